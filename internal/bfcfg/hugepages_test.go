package bfcfg

import (
	"errors"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/apimachinery/pkg/api/resource"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const holder = "/etc/kubernetes/manifests/ovs-hugepages.yaml"

// flavored is the source with a flavor of its own.
func flavored(t *testing.T, spec string) Source {
	t.Helper()
	from := source(t)
	from.Flavor = flavor(t, []byte("spec: "+spec))
	from.Flavor.Annotations = source(t).Flavor.Annotations
	return from
}

// The kubelet's own parser reads the pod.
func TestWhichHugepagesAreHeldForOpenVSwitch(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want map[corev1.ResourceName]string
	}{
		"of the guides":          {`{grub: {kernelParameters: [console=hvc0, hugepagesz=2048kB, hugepages=3072]}}`, map[corev1.ResourceName]string{"hugepages-2Mi": "500Mi"}},
		"in one parameter":       {`{grub: {kernelParameters: ["default_hugepagesz=2M hugepages=250"]}}`, map[corev1.ResourceName]string{"hugepages-2Mi": "500Mi"}},
		"of the kernel's size":   {`{grub: {kernelParameters: [hugepages=250]}}`, map[corev1.ResourceName]string{"hugepages-2Mi": "500Mi"}},
		"larger pages":           {`{grub: {kernelParameters: [hugepagesz=1G, hugepages=4]}}`, map[corev1.ResourceName]string{"hugepages-1Gi": "1Gi"}},
		"the second are enough":  {`{grub: {kernelParameters: [hugepagesz=2M, hugepages=8, hugepagesz=512M, hugepages=2]}}`, map[corev1.ResourceName]string{"hugepages-512Mi": "512Mi"}},
		"not enough":             {`{grub: {kernelParameters: [hugepagesz=2M, hugepages=249]}}`, nil},
		"none":                   {`{}`, nil},
		"no numbers":             {`{grub: {kernelParameters: [hugepagesz=big, hugepages=4000, hugepagesz=2M, "hugepages=0:4000"]}}`, nil},
		"the flavor says":        {`{dpuResources: {hugepages-2Mi: 6Gi}, systemReservedResources: {cpu: 4, hugepages-2Mi: 1Gi}, grub: {kernelParameters: [hugepages=3072]}}`, map[corev1.ResourceName]string{"hugepages-2Mi": "1Gi"}},
		"two sizes":              {`{systemReservedResources: {hugepages-1Gi: 1Gi, hugepages-2Mi: 64Mi}}`, map[corev1.ResourceName]string{"hugepages-1Gi": "1Gi", "hugepages-2Mi": "64Mi"}},
		"the flavor says none":   {`{systemReservedResources: {hugepages-2Mi: 0}, grub: {kernelParameters: [hugepages=3072]}}`, nil},
		"the flavor says others": {`{systemReservedResources: {memory: 4Gi}, grub: {kernelParameters: [hugepages=3072]}}`, map[corev1.ResourceName]string{"hugepages-2Mi": "500Mi"}},
	} {
		t.Run(name, func(t *testing.T) {
			target := install(t, flavored(t, c.spec)).target
			if c.want == nil {
				if fileAt(&target, holder) >= 0 {
					t.Errorf("held: %s", file(t, target, holder))
				}
				return
			}
			pod := corev1.Pod{}
			if err := yaml.UnmarshalStrict([]byte(file(t, target, holder)), &pod); err != nil {
				t.Fatal(err)
			}
			container := pod.Spec.Containers[0]
			if container.Image != "quay.io/example/pod@sha256:0123" {
				t.Errorf("the image is %s", container.Image)
			}
			for _, of := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
				if delete(of, corev1.ResourceCPU); len(of) != len(c.want)+1 {
					t.Errorf("it holds %v", of)
				}
				for name, want := range c.want {
					if got := of[name]; got.Cmp(resource.MustParse(want)) != 0 {
						t.Errorf("it holds %s of %s, want %s", got.String(), name, want)
					}
				}
			}
		})
	}
}

func TestHugepagesThatCannotBeHeldAreToldOf(t *testing.T) {
	unnamed := func(s Source) Source {
		s.Ignition = []byte(strings.ReplaceAll(string(s.Ignition), "pause_image", "other_image"))
		return s
	}
	const said = `{systemReservedResources: {hugepages-2Mi: 500Mi}}`
	for name, c := range map[string]struct {
		from          Source
		reason, field string
	}{
		"half a page":    {flavored(t, `{systemReservedResources: {hugepages-2Mi: 1Mi}}`), FlavorInvalid, "DPUFlavor spec.systemReservedResources"},
		"no size":        {flavored(t, `{systemReservedResources: {hugepages-: 1Mi}}`), FlavorInvalid, "DPUFlavor spec.systemReservedResources"},
		"pages of 0":     {flavored(t, `{systemReservedResources: {hugepages-0: 1Mi}}`), FlavorInvalid, "DPUFlavor spec.systemReservedResources"},
		"no pause image": {unnamed(flavored(t, said)), PauseImageNotFound, "HyperShift's ignition, /etc/crio/crio.conf"},
	} {
		_, err := Template(c.from)
		if problem, is := errors.AsType[*Problem](err); !is || problem.Reason != c.reason || problem.Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	target := install(t, unnamed(source(t))).target
	if fileAt(&target, holder) >= 0 {
		t.Error("a pod without an image holds hugepages")
	}
}

func TestTheLastFileOfCRIOCounts(t *testing.T) {
	config := types.Config{}
	for at, text := range map[string]string{
		"/etc/crio/crio.conf.d/90-mine": "[crio.image]\n  pause_image=\"last\"\n", "/etc/crio/crio.conf.d/00-default": "pause_image = \"first\"", "/etc/crio/crio.conf": "pause_image = \"oldest\"",
		"/etc/crio/crio.conf.d/99-none": "# pause_image = \"comment\"", "/etc/zz/crio.conf": "pause_image = \"elsewhere\"",
	} {
		putFile(&config, at, 0o644, packed([]byte(text)))
	}
	if got := pauseImage(config); got != "last" {
		t.Errorf("it is %q", got)
	}
}
