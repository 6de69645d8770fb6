package controller_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// grants are those that the managers of all tests have used, each as "verb group/resource". A grant that no test uses is a defect
// (operator-rules.md#grants).
type grants struct {
	mu   sync.Mutex
	used map[string]bool
}

var used = &grants{used: map[string]bool{}}

// unseen are updates of finalizers and deletions of owned objects: OwnerReferencesPermissionEnforcement requires them, besides the call that
// it checks (internal/rbac/vlan). One verb may also replace another: a watch becomes a list if the API server does not send the initial
// objects, and takeOver gets any kind to which others added something.
var unseen = regexp.MustCompile(`^(update .*/finalizers|delete (hostedcluster\.densityops\.com/infras|/serviceaccounts|/services|apps/.*|policy/.*)|get (k8s\.cni\.cncf\.io|metallb\.io)/.*)$`)

func (g *grants) of(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err == nil && answer.StatusCode != http.StatusForbidden {
			g.mu.Lock()
			defer g.mu.Unlock()
			for _, grant := range usedBy(r, answer.StatusCode) {
				g.used[grant] = true
			}
		}
		return answer, err
	})
}

// whole says whether all tests run.
func whole() bool {
	return !slices.ContainsFunc([]string{"test.run", "test.skip", "test.list"}, func(part string) bool { return flag.Lookup(part).Value.String() != "" })
}

// never are the grants of the operator's Roles that no test has used.
func (g *grants) never() (left []string, err error) {
	for _, file := range []string{"rbac/role", "rbac/vlan_role", "rbac/bridge_role", "components/apps-ingress/namespace_role", "components/dpu-bridge/namespace_role", "components/metallb/namespace_role", "components/image-cache/namespace_role"} {
		text, err := os.ReadFile("../../config/" + file + ".yaml")
		if err != nil {
			return nil, err
		}
		objects, err := envtest.Objects(text, controller.Scheme())
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			switch role := o.(type) {
			case *rbacv1.ClusterRole:
				left = append(left, each(role.Rules)...)
			case *rbacv1.Role:
				left = append(left, each(role.Rules)...)
			}
		}
	}
	return slices.DeleteFunc(left, func(grant string) bool {
		return g.used[grant] || unseen.MatchString(grant) || g.used[strings.Replace(grant, "list ", "watch ", 1)]
	}), nil
}

func each(rules []rbacv1.PolicyRule) (all []string) {
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					all = append(all, fmt.Sprintf("%s %s/%s", verb, group, resource))
				}
			}
		}
	}
	return all
}

// called matches a path of the API: group, resource, name and subresource.
var called = regexp.MustCompile(`^/api(?:s/([^/]+))?/[^/]+(?:/namespaces/[^/]+)?/([^/]+)(?:/([^/]+)(/[^/]+)?)?$`)

// usedBy are the grants that a call needs: for what it does and creates, and for the rules of a Role that it writes.
func usedBy(r *http.Request, answer int) (all []string) {
	of := called.FindStringSubmatch(r.URL.Path)
	if of == nil {
		return nil
	}
	verb := map[string]string{"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[r.Method]
	switch {
	case r.URL.Query().Has("watch"):
		verb = "watch"
	case verb == "get" && of[3] == "":
		verb = "list"
	case verb == "delete" && of[3] == "":
		verb = "deletecollection"
	case verb == "patch" && answer == http.StatusCreated:
		all = append(all, "create "+of[1]+"/"+of[2])
	}
	all = append(all, verb+" "+of[1]+"/"+of[2]+of[4])
	if of[2] == "roles" && r.GetBody != nil {
		all = append(all, given(r)...)
	}
	return all
}

func given(r *http.Request) []string {
	role := rbacv1.Role{}
	body, err := r.GetBody()
	if err != nil {
		panic(err) // the body is in memory
	}
	if text, err := io.ReadAll(body); err != nil || yaml.Unmarshal(text, &role) != nil {
		return nil
	}
	return each(role.Rules)
}

func TestACallUsesAGrant(t *testing.T) {
	const infras = "/apis/hostedcluster.densityops.com/v1alpha1/namespaces/a/infras"
	for _, c := range []struct {
		method, url, body string
		answer            int
		uses              []string
	}{
		{"GET", "/api/v1/namespaces", "", 200, []string{"list /namespaces"}},
		{"GET", "/api/v1/namespaces/a", "", 200, []string{"get /namespaces"}},
		{"GET", "/api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Db&watch=true", "", 200, []string{"watch /secrets"}},
		{"PATCH", infras + "/c1?force=true", "{}", 200, []string{"patch hostedcluster.densityops.com/infras"}},
		{"PATCH", infras + "/c1", "{}", 201, []string{"create hostedcluster.densityops.com/infras", "patch hostedcluster.densityops.com/infras"}},
		{"PATCH", infras + "/c1/status", "{}", 200, []string{"patch hostedcluster.densityops.com/infras/status"}},
		{"DELETE", infras, "", 200, []string{"deletecollection hostedcluster.densityops.com/infras"}},
		{"POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles", `{"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}`, 201,
			[]string{"create rbac.authorization.k8s.io/roles", "get /pods"}},
		{"GET", "/apis/hostedcluster.densityops.com/v1alpha1", "", 200, nil},
	} {
		t.Run(c.method+" "+c.url, func(t *testing.T) {
			g := NewWithT(t)
			r, err := http.NewRequestWithContext(t.Context(), c.method, c.url, strings.NewReader(c.body))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(usedBy(r, c.answer)).To(Equal(c.uses))
		})
	}
}
