package dpf

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// The decoder is that of clients and caches, which hand out copies.
func TestAFlavorKeepsTheFieldsThatWeDoNotRead(t *testing.T) {
	const spec = `{"configFiles":[{"path":"/etc/motd","raw":"hello"}],"dpuResources":{"cpu":16},"sysctl":{"parameters":["a=1"]}}`
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode([]byte(`{"apiVersion":"provisioning.dpu.nvidia.com/v1alpha1","kind":"DPUFlavor","metadata":{"name":"hbn"},"spec":`+spec+`}`), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	flavor := object.DeepCopyObject().(*DPUFlavor)
	if flavor.Name != "hbn" || len(flavor.Spec.ConfigFiles) != 1 || flavor.Spec.ConfigFiles[0].Raw != "hello" {
		t.Errorf("it is %+v", flavor)
	}
	written, err := json.Marshal(flavor.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(spec, string(written)); diff != "" {
		t.Error(diff)
	}
}
