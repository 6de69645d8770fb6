package bridge_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// layers has the images of the releases that the mapping does not have.
const layers = "quay.io/example/layers"

// looksUp is a bridge with a hosted cluster, whose image is looked up.
func looksUp(t *testing.T) bridge.Input {
	t.Helper()
	in := load(t, "testdata/loadbalancer/in.yaml")
	made(&in)
	in.Mapping.Data = map[string]string{bridge.RepositoryKey: layers + "\n"}
	return in
}

// aboutImage is what a plan says of its image.
func aboutImage(p bridge.Plan) (all []finding.Finding) {
	for _, f := range p.Findings {
		if f.Condition == dpuv1.ConditionBlueFieldContainerImageAvailable {
			all = append(all, f)
		}
	}
	return all
}

func TestWhatRegistriesAreAsked(t *testing.T) {
	byDigest := func(in *bridge.Input, repository string) {
		in.Bridge.Spec.OCPReleaseImage = dpuv1.ReleaseImage(repository + "@" + digest)
	}
	mirror := func(in *bridge.Input, source string, policy configv1.MirrorSourcePolicy, mirrors ...configv1.ImageMirror) {
		in.DigestMirrors = append(in.DigestMirrors, configv1.ImageDigestMirrorSet{Spec: configv1.ImageDigestMirrorSetSpec{ImageDigestMirrors: []configv1.ImageDigestMirrors{{Source: source, Mirrors: mirrors, MirrorSourcePolicy: policy}}}})
	}
	for name, c := range map[string]struct {
		is      func(in *bridge.Input)
		version string // empty: of the release
		places  []string
		refused string
	}{
		"the tag without its architecture": {func(*bridge.Input) {}, "4.20.4", []string{layers}, ""},
		"a tag with a digest, too": {func(in *bridge.Input) {
			in.Bridge.Spec.OCPReleaseImage = "elsewhere.example/r:4.20.5-aarch64@" + digest
		}, "4.20.5", []string{layers}, ""},
		"a release by its digest":               {func(in *bridge.Input) { byDigest(in, "quay.io/ocp/release") }, "", []string{"quay.io/ocp/release"}, ""},
		"of a registry that no admin has named": {func(in *bridge.Input) { byDigest(in, "internal.svc:8443/ocp/release") }, "", nil, "InvalidReleaseImage"},
		"of one that has a mirror": {func(in *bridge.Input) {
			byDigest(in, "internal.svc:8443/ocp/release")
			mirror(in, "internal.svc:8443/ocp", "", "mirror.example/ocp")
		}, "", []string{"mirror.example/ocp/release"}, ""},
		"a mirror of something else": {func(in *bridge.Input) {
			byDigest(in, "internal.svc:8443/ocp/release")
			mirror(in, "internal.svc:8443/ocp/rel", "", "mirror.example/ocp")
		}, "", nil, "InvalidReleaseImage"},
		"mirrors of digests only": {func(in *bridge.Input) { mirror(in, "quay.io", "", "mirror.example") }, "4.20.4", []string{layers}, ""},
		"a repository with a tag": {func(in *bridge.Input) { in.Mapping.Data[bridge.RepositoryKey] += ":4.20" }, "", nil, "RepositoryInvalid"},
		"no repository":           {func(in *bridge.Input) { in.Mapping.Data[bridge.RepositoryKey] = "to be told" }, "", nil, "RepositoryInvalid"},
		"mirrors that are not read whole": {func(in *bridge.Input) {
			in.TagMirrors = []configv1.ImageTagMirrorSet{{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{names.AnnotationKeptInPart: "spec 200000"}}}}
		}, "", nil, "ObjectTooLarge"},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), looksUp(t)
			c.is(&in)
			want := in.Lookup()
			if c.refused != "" {
				g.Expect(want).To(BeNil())
				g.Expect(aboutImage(bridge.Of(in))).To(ConsistOf(HaveField("Reason", c.refused)))
				return
			}
			places := want.Images
			if g.Expect(want.Version).To(Equal(c.version)); c.version == "" {
				g.Expect(want.Digest).To(Equal(digest))
				places = want.Releases
			}
			var repositories []string
			for _, p := range places {
				repositories = append(repositories, p.Repository)
				g.Expect(p.Login == "").To(Equal(!strings.HasPrefix(p.Repository, "quay.io/")), "the pull secret has a login for quay.io alone: %v", p)
			}
			g.Expect(repositories).To(Equal(c.places))
		})
	}
}

func TestNoRegistryIsAskedForAnImageThatIsKnown(t *testing.T) {
	for name, is := range map[string]func(in *bridge.Input){
		"the bridge's own":              func(in *bridge.Input) { in.Bridge.Spec.MachineOSImage = image },
		"the bridge's own, renamed":     func(in *bridge.Input) { in.Bridge.Spec.MachineOSURL = image },
		"the mapping's":                 func(in *bridge.Input) { in.Mapping.Data["4.20.4"] = image },
		"nothing, without a repository": func(in *bridge.Input) { delete(in.Mapping.Data, bridge.RepositoryKey) },
		"nothing, without a mapping":    func(in *bridge.Input) { in.Mapping = nil },
	} {
		in := looksUp(t)
		is(&in)
		in.Answer = bridge.Answer{Image: layers + ":stale"}
		NewWithT(t).Expect(in.Lookup()).To(BeNil(), name)
		if !strings.HasPrefix(name, "nothing") {
			NewWithT(t).Expect(bridge.Of(in).Image).To(Equal(image), name)
		}
	}
}

func TestMirrorsAreAskedInOrderAndTheSourceLast(t *testing.T) {
	const never = configv1.NeverContactSource
	entry := func(source string, policy configv1.MirrorSourcePolicy, mirrors ...configv1.ImageMirror) configv1.ImageTagMirrors {
		return configv1.ImageTagMirrors{Source: source, Mirrors: mirrors, MirrorSourcePolicy: policy}
	}
	for name, c := range map[string]struct {
		entries []configv1.ImageTagMirrors
		want    []string
	}{
		"of the registry":        {[]configv1.ImageTagMirrors{entry("quay.io", "", "a.example", "b.example/quay")}, []string{"a.example/example/layers", "b.example/quay/example/layers", layers}},
		"of the path":            {[]configv1.ImageTagMirrors{entry("quay.io/example", "", "a.example/x")}, []string{"a.example/x/layers", layers}},
		"of itself":              {[]configv1.ImageTagMirrors{entry(layers, "", "a.example/x")}, []string{"a.example/x", layers}},
		"of all such registries": {[]configv1.ImageTagMirrors{entry("*.io", "", "a.example")}, []string{"a.example/example/layers", layers}},
		"of others":              {[]configv1.ImageTagMirrors{entry("quay.io/exam", never, "a.example"), entry("*.quay.io", never, "a.example"), entry("quay.io/example/layers/x", never, "a.example")}, []string{layers}},
		"the most specific":      {[]configv1.ImageTagMirrors{entry("quay.io", never, "a.example"), entry("quay.io/example", "", "b.example")}, []string{"b.example/layers", layers}},
		"of several sets":        {[]configv1.ImageTagMirrors{entry("quay.io", "", "a.example", "b.example"), entry("quay.io", "", "b.example", "c.example")}, []string{"a.example/example/layers", "b.example/example/layers", "c.example/example/layers", layers}},
		"not the source":         {[]configv1.ImageTagMirrors{entry("quay.io", "", "a.example"), entry("quay.io", never, "b.example")}, []string{"a.example/example/layers", "b.example/example/layers"}},
		"the source as a mirror": {[]configv1.ImageTagMirrors{entry("quay.io", never, "quay.io", "b.example")}, []string{layers, "b.example/example/layers"}},
		"never, but no mirror":   {[]configv1.ImageTagMirrors{entry("quay.io", never)}, []string{layers}},
	} {
		in := looksUp(t)
		for _, e := range c.entries {
			in.TagMirrors = append(in.TagMirrors, configv1.ImageTagMirrorSet{Spec: configv1.ImageTagMirrorSetSpec{ImageTagMirrors: []configv1.ImageTagMirrors{e}}})
		}
		var got []string
		for _, p := range in.Lookup().Images {
			got = append(got, p.Repository)
		}
		NewWithT(t).Expect(got).To(Equal(c.want), name)
	}
}

func TestALoginIsThatOfTheLongestPath(t *testing.T) {
	for name, c := range map[string]struct {
		auths map[string]any
		want  string
	}{
		"the registry's":          {map[string]any{"quay.io": "host", "quay.io:443": "port", "example.com": "other"}, `"host"`},
		"the path's":              {map[string]any{"quay.io": "host", "quay.io/example": "path", "quay.io/exam": "no"}, `"path"`},
		"the repository's":        {map[string]any{"quay.io/example": "path", layers: "own", layers + "/x": "no"}, `"own"`},
		"as old clients write it": {map[string]any{"https://quay.io/v1/": "old"}, `"old"`},
		"none":                    {map[string]any{"io": "no", "*.io": "no", "quay.io/": "no"}, ""},
		"one without end":         {map[string]any{"quay.io": strings.Repeat("x", 20<<10)}, ""},
	} {
		in := looksUp(t)
		text, err := json.Marshal(map[string]any{"auths": c.auths})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		in.PullSecret.Data = map[string][]byte{bridge.PullSecretKey: text}
		NewWithT(t).Expect(in.Lookup().Images).To(Equal([]bridge.Place{{Repository: layers, Login: c.want}}), name)
	}
	in := looksUp(t)
	in.Mapping.Data[bridge.RepositoryKey] = "docker.io/example/layers"
	in.PullSecret.Data = map[string][]byte{bridge.PullSecretKey: []byte(`{"auths":{"https://index.docker.io/v1/":"hub"}}`)}
	NewWithT(t).Expect(in.Lookup().Images).To(Equal([]bridge.Place{{Repository: "docker.io/example/layers", Login: `"hub"`}}), "as docker login writes it")
	in = looksUp(t)
	in.PullSecret = bridge.Secret{}
	NewWithT(t).Expect(in.Lookup().Images).To(Equal([]bridge.Place{{Repository: layers}}), "without a Secret")
}

func TestWhatARegistrySaysIsTheCondition(t *testing.T) {
	for reason, says := range map[string]string{
		"":                          "is looked up in " + layers,
		bridge.RegistryUnreachable:  "have that mended at the registry, or on the way there; the operator tries again",
		bridge.RegistryUnauthorized: "Secret dpf/pull",
		bridge.ImageNotFound:        "add the release to ConfigMap oooi-system/images",
		bridge.InvalidReleaseImage:  "set ocpReleaseImage",
	} {
		g, in := NewWithT(t), looksUp(t)
		in.Answer = bridge.Answer{Reason: reason, Message: "what it said"}
		p := bridge.Of(in)
		g.Expect(p.Image).To(BeEmpty())
		g.Expect(p.Frozen).To(BeTrue(), "%q: half a hosted cluster is of no use", reason)
		if reason == "" {
			reason = bridge.LookingUp
		} else {
			g.Expect(aboutImage(p)[0].Message).To(ContainSubstring("what it said"))
		}
		g.Expect(aboutImage(p)).To(ConsistOf(And(HaveField("Reason", reason), HaveField("Severity", finding.Waiting), HaveField("Message", ContainSubstring(says)))))
		g.Expect(p.Approve).NotTo(BeNil(), "DPUs join all the same")
	}
	in := looksUp(t)
	in.Answer = bridge.Answer{Image: layers + ":4.20.4"}
	p := bridge.Of(in)
	NewWithT(t).Expect(p.Image).To(Equal(layers + ":4.20.4"))
	NewWithT(t).Expect(told(p)).To(ContainElement("BlueFieldContainerImageAvailable/Found"))
}

// found is a bridge whose status says that its image was found.
func found(t *testing.T) bridge.Input {
	t.Helper()
	in := looksUp(t)
	in.Bridge.Generation = 2
	in.Bridge.Status.BlueFieldContainerImage = layers + ":4.20.4"
	in.Bridge.Status.Conditions = []metav1.Condition{{Type: dpuv1.ConditionBlueFieldContainerImageAvailable, Status: metav1.ConditionTrue, Reason: "Found", ObservedGeneration: 2}}
	return in
}

func TestWhatWasFoundStaysWhileARegistryDoesNotAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		is   func(in *bridge.Input)
		kept bool
	}{
		"a restart of the operator": {func(*bridge.Input) {}, true},
		"a registry that is down":   {func(in *bridge.Input) { in.Answer.Reason = bridge.RegistryUnreachable }, true},
		"an image that is gone":     {func(in *bridge.Input) { in.Answer.Reason = bridge.ImageNotFound }, false},
		"a login that is refused":   {func(in *bridge.Input) { in.Answer.Reason = bridge.RegistryUnauthorized }, false},
		"another release": {func(in *bridge.Input) {
			in.Bridge.Generation, in.Bridge.Spec.OCPReleaseImage = 3, "quay.io/ocp/release:4.20.5"
		}, false},
		"another release by its digest": {func(in *bridge.Input) {
			in.Bridge.Generation, in.Bridge.Spec.OCPReleaseImage = 3, "quay.io/ocp/release@"+digest
		}, false},
		"the release by its digest":  {func(in *bridge.Input) { in.Bridge.Spec.OCPReleaseImage = "quay.io/ocp/release@" + digest }, true},
		"another field":              {func(in *bridge.Input) { in.Bridge.Generation = 3 }, true},
		"another repository":         {func(in *bridge.Input) { in.Mapping.Data[bridge.RepositoryKey] = "quay.io/example/others" }, false},
		"another tag, by its status": {func(in *bridge.Input) { in.Bridge.Status.BlueFieldContainerImage = layers + ":4.20.3" }, false},
		"no longer its own": {func(in *bridge.Input) {
			in.Bridge.Status.Conditions[0].Reason = "MachineOSImage"
		}, false},
	} {
		in := found(t)
		c.is(&in)
		want := ""
		if c.kept {
			want = layers + ":4.20.4"
		}
		NewWithT(t).Expect(bridge.Of(in).Image).To(Equal(want), name)
	}
}

// The public operator's bug 217: its status said for ever that the image is the one that was named once.
func TestTheLookUpCountsAgainWhenTheOwnImageIsCleared(t *testing.T) {
	g, in := NewWithT(t), found(t)
	in.Bridge.Spec.MachineOSURL = image
	in.Bridge.Status.BlueFieldContainerImage, in.Bridge.Status.Conditions[0].Reason = image, "MachineOSImage"
	g.Expect(bridge.Of(in).Image).To(Equal(image))
	in.Bridge.Spec.MachineOSURL = ""
	in.Bridge.Generation++
	g.Expect(in.Lookup()).NotTo(BeNil())
	p := bridge.Of(in)
	g.Expect(p.Image).To(BeEmpty())
	g.Expect(aboutImage(p)).To(ConsistOf(HaveField("Reason", bridge.LookingUp)))
}

func TestAdmissionWaitsForNoRegistry(t *testing.T) {
	for name, c := range map[string]struct {
		is     func(in *bridge.Input)
		refuse bool
	}{
		"a repository":                           {func(in *bridge.Input) { in.Mapping.Data = map[string]string{bridge.RepositoryKey: layers} }, false},
		"a repository that is none":              {func(in *bridge.Input) { in.Mapping.Data = map[string]string{bridge.RepositoryKey: "x"} }, false},
		"neither image nor repository":           {func(in *bridge.Input) { in.Mapping.Data = nil }, true},
		"an image of its own":                    {func(in *bridge.Input) { in.Mapping, in.Bridge.Spec.MachineOSImage = nil, image }, false},
		"an image of its own, by its other name": {func(in *bridge.Input) { in.Mapping, in.Bridge.Spec.MachineOSURL = nil, image }, false},
		"a release that no registry may tell": {func(in *bridge.Input) {
			in.Mapping.Data = map[string]string{bridge.RepositoryKey: layers}
			in.Bridge.Spec.OCPReleaseImage = "internal.svc/r@" + digest
		}, false},
	} {
		in := asked()
		in.Mapping = &corev1.ConfigMap{Data: in.Mapping.Data}
		c.is(&in)
		refused, _ := bridge.Judge(in, nil)
		NewWithT(t).Expect(len(refused) > 0).To(Equal(c.refuse), "%s: %v", name, refused)
	}
}
