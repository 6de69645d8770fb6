// oooi joins workers on isolated networks to OpenShift hosted control planes.
package main

import (
	"fmt"
	"os"

	"github.com/cldmnky/oooi/cmd"
)

func main() {
	if err := cmd.Root().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "oooi:", err)
		os.Exit(cmd.ExitCode(err))
	}
}
