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

// For starts a Cluster for one test. See Start for bare.
func For(t testing.TB, bare bool) *Cluster {
	t.Helper()
	cluster, err := Start(bare)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster
}
