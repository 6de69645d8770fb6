// Package rbac_test lists what each account of the product may do, by an API server's own answer, for a person to read.
package rbac_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/render"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

const root = "../.."

// installed is a case: what is applied, and whose rights are listed in which namespaces. Nothing is granted in the last namespace.
type installed struct {
	Accounts, Namespaces []string
	Apply                []string // arguments of `kubectl apply`
	Infra                string   // a file with an Infra; the Roles of its plan are applied
}

// A list has what `kubectl auth can-i --list` prints, without what every account has. A line that is added, or grows, needs a reason in
// testdata/added.tsv.
func TestGoldenRights(t *testing.T) {
	cluster := envtest.For(t, true)
	golden.Cases(t, "testdata", []string{"case.yaml"}, func(t *testing.T, dir string) map[string]string {
		c := newCase(t, cluster, filepath.Join(dir, "case.yaml"))
		for _, what := range c.Apply {
			c.kubectl("apply --server-side --force-conflicts " + what)
			t.Cleanup(func() { c.kubectl("delete --wait=false " + what) })
		}
		if c.Infra != "" {
			c.plans()
		}
		var text strings.Builder
		for _, account := range c.Accounts {
			fmt.Fprintf(&text, "%s\n%s", account, c.list(account))
		}
		return map[string]string{"rights.txt": text.String()}
	})
}

type theCase struct {
	Gomega
	*testing.T
	installed
	admin      *rest.Config
	api        client.Client // admin's
	kubeconfig string
}

func newCase(t *testing.T, cluster *envtest.Cluster, file string) theCase {
	t.Helper()
	c := theCase{Gomega: NewWithT(t), T: t, admin: cluster.Admin, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	text, err := os.ReadFile(file)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(yaml.UnmarshalStrict(text, &c.installed)).To(Succeed())
	text, err = yaml.Marshal(envtest.Kubeconfig(cluster.Admin.Host, cluster.Admin.CAData, cluster.Admin))
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(os.WriteFile(c.kubeconfig, text, 0o600)).To(Succeed())
	c.api, err = client.New(cluster.Admin, client.Options{})
	c.Expect(err).NotTo(HaveOccurred())
	for _, namespace := range c.Namespaces {
		c.Expect(client.IgnoreAlreadyExists(c.api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))).To(Succeed())
	}
	return c
}

func (c theCase) kubectl(line string) {
	c.Helper()
	kubectl := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), append(strings.Fields(line), "--kubeconfig="+c.kubeconfig)...)
	kubectl.Dir = root
	out, err := kubectl.CombinedOutput()
	c.Expect(err).NotTo(HaveOccurred(), string(out))
}

// plans applies the Roles and RoleBindings of an Infra's plan.
func (c theCase) plans() {
	c.Helper()
	objects, _, err := render.Files(nil, []string{c.Infra})
	c.Expect(err).NotTo(HaveOccurred())
	for _, r := range objects.Render(input.Settings{Image: "oooi:1", EnvoyImage: "envoy:1", ClusterDomain: "cluster.local"}) {
		for _, o := range r.Objects {
			var made unstructured.Unstructured
			text, err := yaml.Marshal(o)
			c.Expect(err).NotTo(HaveOccurred())
			c.Expect(yaml.Unmarshal(text, &made.Object)).To(Succeed())
			if made.GetKind() != "Role" && made.GetKind() != "RoleBinding" {
				continue
			}
			made.SetOwnerReferences(nil) // only a cluster has their UIDs
			c.Expect(c.api.Create(c.Context(), &made)).To(Succeed())
		}
	}
}

// rights are verbs by resource, with the resource names to which they are restricted.
type rights map[string][]string

// of is the rights of an account in a namespace.
func (c theCase) of(account, namespace string) rights {
	c.Helper()
	theirs, name, _ := strings.Cut(account, "/")
	as := rest.CopyConfig(c.admin)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + theirs + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + theirs, "system:authenticated"}}
	api, err := client.New(as, client.Options{})
	c.Expect(err).NotTo(HaveOccurred())
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	c.Expect(api.Create(c.Context(), review)).To(Succeed())
	c.Expect(review.Status.Incomplete).To(BeFalse())
	all := rights{}
	for _, r := range review.Status.NonResourceRules {
		all.add(r.Verbs, r.NonResourceURLs, nil)
	}
	for _, r := range review.Status.ResourceRules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				all.add(r.Verbs, []string{strings.TrimPrefix(group+"/"+resource, "/")}, r.ResourceNames)
			}
		}
	}
	return all
}

func (r rights) add(verbs, to, names []string) {
	for _, what := range to {
		if len(names) > 0 {
			what += " " + strings.Join(slices.Sorted(slices.Values(names)), " ")
		}
		r[what] = slices.Compact(slices.Sorted(slices.Values(append(r[what], verbs...))))
	}
}

// without is r without the rights that others have too.
func (r rights) without(others rights) rights {
	more := rights{}
	for what, verbs := range r {
		verbs = slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return slices.Contains(others[what], verb) })
		if len(verbs) > 0 {
			more[what] = verbs
		}
	}
	return more
}

// list is the text of an account's rights, first those in any namespace.
func (c theCase) list(account string) string {
	c.Helper()
	anywhere := c.Namespaces[len(c.Namespaces)-1]
	everywhere := c.of(account, anywhere)
	text := "in any namespace\n" + everywhere.without(c.of(anywhere+"/nobody", anywhere)).text()
	for _, namespace := range c.Namespaces[:len(c.Namespaces)-1] {
		text += "in " + namespace + ", besides\n" + c.of(account, namespace).without(everywhere).text()
	}
	return text
}

func (r rights) text() string {
	if len(r) == 0 {
		return "  nothing\n"
	}
	var text strings.Builder
	for _, what := range slices.Sorted(maps.Keys(r)) {
		fmt.Fprintf(&text, "  %s: %s\n", what, strings.Join(r[what], " "))
	}
	return text.String()
}
