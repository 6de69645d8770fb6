package workload

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// An edit of a NodePool, or of a network's resource, restarts no DNS pod: it takes effect with the next one.
func TestWhereTheVLANIsReplacesNoPod(t *testing.T) {
	for name, change := range map[string]func(*Child[*v1alpha1.DNSServer]){
		"NodePools begin to say it": func(in *Child[*v1alpha1.DNSServer]) {
			in.Server.Annotations = map[string]string{names.AnnotationNodes: "rack=b"}
		},
		"they cease to": func(in *Child[*v1alpha1.DNSServer]) { in.Server.Annotations = nil },
		"the network says it": func(in *Child[*v1alpha1.DNSServer]) {
			in.NAD.Annotations = map[string]string{nad.ResourceName: "example.com/br"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), aServer()
			in.Server.Annotations = map[string]string{names.AnnotationNodes: "rack=a"}
			was := servedOf(serverWorkload(in))
			change(&in)
			in.Running = was.annotations
			now, waits := releases(serverWorkload(in), serverWorkload(in).dns(in.Settings))
			g.Expect(desired.Encoded(now.template)).To(MatchJSON(desired.Encoded(was.template)))
			g.Expect(waits).To(ConsistOf(HaveField("Reason", "TemplateUpdatePending")))

			in.Server.Spec.Image = "example.com/oooi:mine"
			w := serverWorkload(in)
			w.Image = in.Server.Spec.Image
			newest := w.dns(in.Settings)
			now, _ = releases(w, newest)
			g.Expect(now.template).To(Equal(newest), "a pod that is replaced anyway goes there")

			in.Running = nil
			fresh := serverWorkload(in)
			now, _ = releases(fresh, fresh.dns(in.Settings))
			g.Expect(now.template).To(Equal(fresh.dns(in.Settings)), "so does the first")
		})
	}
}

func TestWhatIsWrittenPlacesAPodAlone(t *testing.T) {
	in := aServer()
	in.Server.Annotations = map[string]string{names.AnnotationNodes: "rack=a"}
	w := serverWorkload(in)
	w.Placement.NodeSelector = map[string]string{"here": "yes"}
	NewWithT(t).Expect(w.dns(in.Settings).Spec.NodeSelector).To(Equal(map[string]string{"here": "yes"}))
}

// A webhook that makes pods request their network's resource may be missing. If it is there, nothing is requested twice.
func TestAPodAsksForTheNetworksResource(t *testing.T) {
	const br = "bridge.network.kubevirt.io/br100"
	for name, c := range map[string]struct {
		resource  string
		unoffered bool
		written   *corev1.ResourceRequirements
		want      int64
	}{
		"none":                        {resource: "", want: 0},
		"what no node has":            {resource: "br100", want: 0},
		"a resource":                  {resource: br, want: 1},
		"what nobody has counted":     {resource: br, unoffered: true, want: 0},
		"beside what is written":      {resource: br, written: &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}, want: 1},
		"one that is written already": {resource: br, written: &corev1.ResourceRequirements{Limits: corev1.ResourceList{br: resource.MustParse("2")}}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), aServer()
			in.NAD.Annotations, in.Unoffered = map[string]string{nad.ResourceName: c.resource}, c.unoffered
			w := serverWorkload(in)
			w.Placement.Resources = c.written
			for _, template := range []*podTemplate{w.dns(in.Settings), w.dhcp(in.Settings), w.proxy(in.Settings, "")} {
				var asked int64
				for _, container := range template.Spec.Containers {
					limit := (*container.Resources.Limits)[corev1.ResourceName(c.resource)]
					asked += limit.Value()
					if request, written := (*container.Resources.Limits)[br]; written && c.want == 1 {
						g.Expect(*container.Resources.Requests).To(HaveKeyWithValue(corev1.ResourceName(br), request))
					}
				}
				g.Expect(asked).To(Equal(c.want))
			}
			if c.written != nil {
				g.Expect(len(c.written.Limits)).To(Equal(1), "what is written is not changed")
			}
		})
	}
}
