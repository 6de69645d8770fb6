package valid

import "fmt"

// Instance checks a daemon's --instance.
func Instance(number int) error {
	if number < 0 {
		return fmt.Errorf("--instance=%d: instances are numbered from 0, e.g. --instance=1", number)
	}
	return nil
}

// Unset says what becomes of the instance whose address a field has no longer.
func Unset(field string) error {
	return fmt.Errorf("%s is not set: this instance is to go, and serves as before until its pod does", field)
}
