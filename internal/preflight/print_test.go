package preflight_test

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"github.com/cldmnky/oooi/internal/preflight"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

func TestReportsArePrinted(t *testing.T) {
	golden.Cases(t, "testdata", []string{"in.yaml"}, func(t *testing.T, dir string) map[string]string {
		all := reports(t, read(t, filepath.Join(dir, "in.yaml")))
		return map[string]string{"table.txt": written(t, preflight.Table, all), "out.json": written(t, preflight.JSON, all)}
	})
}

func written(t *testing.T, write func(io.Writer, []preflight.Report) error, all []preflight.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out, all); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
