package envtest

import (
	"fmt"
	"os"
	"testing"
)

// Main runs the tests of a package beside a Cluster, which use takes first, and exits as they did. See Start for bare.
func Main(m *testing.M, bare bool, use func(*Cluster) error) {
	cluster, err := Start(bare)
	if err == nil {
		err = use(cluster)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
