package cmd

import "errors"

// exit is an error with the process' exit code.
type exit struct {
	error
	code int
}

// Unwrap gives the error without the code.
func (e exit) Unwrap() error { return e.error }

// ExitCode of an error; 1 if it has none.
func ExitCode(err error) int {
	if e := (exit{}); errors.As(err, &e) {
		return e.code
	}
	return 1
}
