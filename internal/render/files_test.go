package render_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/render"
)

// place writes files into a directory of their own.
func place(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		NewWithT(t).Expect(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700)).To(Succeed())
		NewWithT(t).Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
	}
	return dir
}

func TestADirectoryIsReadAsKubectlReadsIt(t *testing.T) {
	g := NewWithT(t)
	dir := place(t, map[string]string{
		"a.yaml":       "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: n1}\n",
		"b.yml":        "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: n2}\n",
		"c.json":       `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "c"}}`,
		"notes.md":     "just words",
		"below/d.yaml": "just words",
	})
	objects, err := render.Files(nil, []string{dir})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(objects).To(HaveLen(3))

	_, err = render.Files(nil, []string{place(t, map[string]string{"notes.md": ""})})
	g.Expect(err).To(MatchError(HaveSuffix("holds no *.yaml, *.yml or *.json")))
}

func TestAnObjectIsGivenOnce(t *testing.T) {
	g := NewWithT(t)
	const infra = "apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\n"
	dir := place(t, map[string]string{"a.yaml": infra + "metadata: {name: c1}\n"})
	again := strings.NewReader(infra + "metadata: {name: c2}\n---\n" + infra + "metadata: {name: c1, namespace: default}\n")
	_, err := render.Files(again, []string{dir, "-"})
	g.Expect(err).To(MatchError("-: Infra default/c1 is given twice, first in " + filepath.Join(dir, "a.yaml") + "; give it once"))
}

func TestAFileThatCannotBeReadIsNamed(t *testing.T) {
	file := filepath.Join(place(t, map[string]string{"a.yaml": "just words"}), "a.yaml")
	_, err := render.Files(nil, []string{file})
	NewWithT(t).Expect(err).To(MatchError(HavePrefix(file + ": document 1: not a Kubernetes object")))
}

// With every Infra a neighbour of every other, some thousands take minutes.
func TestAPlanIsGivenOnlyTheNeighboursOnItsVLAN(t *testing.T) {
	g := NewWithT(t)
	objects, err := render.Read(strings.NewReader(vlan("v1", "br1") + vlan("v2", "br1") + vlan("v3", "br3") +
		infraOn("a", "v1") + infraOn("b", "v2") + infraOn("c", "v3") + infraOn("d", "missing") + infraOn("e", "missing")))
	g.Expect(err).NotTo(HaveOccurred())
	beside := map[string][]string{}
	for _, in := range objects.Inputs(plan.Settings{}) {
		for _, n := range in.Neighbours {
			beside[in.Infra.Name] = append(beside[in.Infra.Name], n.Infra.Name)
		}
	}
	g.Expect(beside).To(Equal(map[string][]string{"a": {"b"}, "b": {"a"}}))
}

func vlan(name, bridge string) string {
	return "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {name: " + name + ", namespace: default}\n" +
		`spec: {config: '{"cniVersion": "0.3.1", "name": "n", "type": "bridge", "bridge": "` + bridge + `"}'}` + "\n---\n"
}

func infraOn(name, nad string) string {
	return "apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\nmetadata: {name: " + name + "}\n" +
		"spec: {networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: " + nad + "}}\n---\n"
}
