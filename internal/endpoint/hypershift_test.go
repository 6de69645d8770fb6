package endpoint

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cldmnky/oooi/internal/names"
)

// source is the HyperShift code, at the version from which these names were taken.
const source = "github.com/openshift/hypershift@v0.1.60"

// TestNamesAreHyperShifts compares every name and port that the table's reader uses with HyperShift's source.
func TestNamesAreHyperShifts(t *testing.T) {
	const (
		manifests = "control-plane-operator/controllers/hostedcontrolplane/manifests/infra.go"
		assets    = "control-plane-operator/controllers/hostedcontrolplane/v2/assets/"
		policies  = "hypershift-operator/controllers/manifests/networkpolicy/manifests.go"
		namespace = "hypershift-operator/controllers/manifests/manifests.go"
	)
	tree := hypershift(t)
	for _, c := range []struct{ ours, file, theirs string }{
		{apiService, manifests, `KubeAPIServerServiceName\s*= "(.*)"`},
		{apiService, manifests, `kubeAPIServerExternalPublicRouteName\s*= "(.*)"`},
		{oauthService, manifests, `oauthServiceName\s*= "(.*)"`},
		{oauthRoute, manifests, `oauthExternalRoutePublicName\s*= "(.*)"`},
		{konnectivity, manifests, `konnectivityServerServiceName\s*= "(.*)"`},
		{strconv.Itoa(konnectivityPort), "control-plane-operator/controllers/hostedcontrolplane/kas/params.go", `KonnectivityServerPort\s*= (\d+)`},
		{ignitionProxy, assets + "ignition-server-proxy/service.yaml", `(?m)^  name: (.*)$`},
		{ignitionServer, assets + "ignition-server-proxy/route.yaml", `(?m)^  name: (.*)$`},
		{ignitionProxy, assets + "ignition-server-proxy/route.yaml", `(?m)^    name: (.*)$`},
		{strings.TrimPrefix(ignitionCA, ignitionServer), "hypershift-operator/controllers/manifests/ignitionserver/manifests.go", `(?s)func IgnitionCACertSecret.*?Name:\s*ResourceName \+ "(.*?)"`},
		{"token", "hypershift-operator/controllers/nodepool/token.go", `TokenSecretPrefix = "(.*)"`},
		{TokenKey, "hypershift-operator/controllers/nodepool/token.go", `TokenSecretTokenKey\s*= "(.*)"`},
		{TokenRelease, "hypershift-operator/controllers/nodepool/token.go", `TokenSecretReleaseKey\s*= "(.*)"`},
		{names.AnnotationConfigVersion, "hypershift-operator/controllers/nodepool/nodepool_controller.go", `nodePoolAnnotationCurrentConfigVersion\s*= "(.*)"`},
		{TokenNodePool, "hypershift-operator/controllers/nodepool/nodepool_controller.go", `nodePoolAnnotation\s*= "(.*)"`},
		{ignitionServer, assets + "ignition-server/service.yaml", `(?m)^  name: (.*)$`},
		{`"%s-%s", hostedClusterNamespace, strings.ReplaceAll(hostedClusterName, ".", "-")`, namespace, `(?s)func HostedControlPlaneNamespace\(.*?Sprintf\((.*?)\)\n`},
		{sharedIngressPolicy, policies, `(?s)func SharedIngressNetworkPolicy.*?Name:\s*"(.*?)"`},
	} {
		text, err := os.ReadFile(filepath.Join(tree, c.file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(c.theirs).FindSubmatch(text)
		if found == nil || string(found[1]) != c.ours {
			t.Errorf("%s: %s is %q, ours is %q", c.file, c.theirs, found, c.ours)
		}
	}
}

func hypershift(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json", source).Output()
	if err != nil {
		t.Fatalf("getting %s to compare names with: %v", source, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	return module.Dir
}
