package observe

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	"github.com/cldmnky/oooi/internal/names"
)

func TestAPauseIsReadAsHyperShiftReadsIt(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	o := &Observer{Now: func() time.Time { return noon }}
	until := func(text string) *hyperv1.HostedCluster {
		return &hyperv1.HostedCluster{Spec: hyperv1.HostedClusterSpec{PausedUntil: &text}}
	}
	for name, c := range map[string]struct {
		annotations map[string]string
		hc          *hyperv1.HostedCluster
		holds       bool
		ends        time.Time
	}{
		"nothing says so":            {nil, &hyperv1.HostedCluster{}, false, time.Time{}},
		"no HostedCluster":           {nil, nil, false, time.Time{}},
		"our annotation":             {map[string]string{names.AnnotationPaused: "true"}, nil, true, time.Time{}},
		"our annotation, empty":      {map[string]string{names.AnnotationPaused: ""}, nil, true, time.Time{}},
		"our annotation, false":      {map[string]string{names.AnnotationPaused: "false"}, nil, false, time.Time{}},
		"until somebody ends it":     {nil, until("true"), true, time.Time{}},
		"false":                      {nil, until("false"), false, time.Time{}},
		"until a time that comes":    {nil, until("2026-11-21T12:00:01Z"), true, noon.Add(time.Second)},
		"until a time that has come": {nil, until("2026-11-21T12:00:00Z"), false, time.Time{}},
		"neither time nor truth":     {nil, until("tomorrow"), false, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			g, p := NewWithT(t), o.pause(c.annotations, c.hc)
			g.Expect(p.Active()).To(Equal(c.holds))
			g.Expect(p.Until).To(BeTemporally("==", c.ends))
		})
	}
}
