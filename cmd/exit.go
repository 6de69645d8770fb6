package cmd

import "errors"

// exit is an error that says which code the process ends with.
type exit struct {
	error
	code int
}

// ExitCode of an error: 1 where it does not say another.
func ExitCode(err error) int {
	if e := (exit{}); errors.As(err, &e) {
		return e.code
	}
	return 1
}
