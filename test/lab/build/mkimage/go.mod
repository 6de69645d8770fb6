module github.com/cldmnky/oooi/test/lab/build/mkimage

go 1.26.0
