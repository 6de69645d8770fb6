module github.com/cldmnky/oooi/test/lab/build/images

go 1.26.0
