package standin

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	ignitionconfig "github.com/coreos/ignition/v2/config/v3_2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// oneToken knows one token, and fails for another.
type oneToken struct{ reached, refused []string }

func (o *oneToken) Payload(_ context.Context, token []byte) ([]byte, bool, error) {
	if string(token) == "unreadable" {
		return nil, false, errors.New("the API is away")
	}
	return []byte("config"), string(token) == "known", nil
}

func (o *oneToken) Reached(_ context.Context, token []byte) error {
	o.reached = append(o.reached, string(token))
	return nil
}

func (o *oneToken) Refused(_ http.Header, why string) { o.refused = append(o.refused, why) }

func TestIgnitionServerAnswersAsHyperShifts(t *testing.T) {
	bearer := func(token string) string { return "Bearer " + base64.StdEncoding.EncodeToString([]byte(token)) }
	for _, c := range []struct {
		name, path, authorization string
		status                    int
		body                      string
		reached, refused          []string
	}{
		{"a known token gets its config and is marked", "/ignition", bearer("known"), 200, "config", []string{"known"}, nil},
		{"any path that begins so does", "/ignition/worker", bearer("known"), 404, "", nil, nil},
		{"a name that continues it is the same", "/ignition-v2", bearer("known"), 200, "config", []string{"known"}, nil},
		{"another path is not found, whatever the token", "/config/worker", bearer("known"), 404, "", nil, nil},
		{"another path without a token is not found either", "/", "", 404, "", nil, nil},
		{"no token", "/ignition", "", 401, "", nil, []string{"Bad header"}},
		{"another scheme", "/ignition", "Basic " + base64.StdEncoding.EncodeToString([]byte("known")), 401, "", nil, []string{"Bad header"}},
		{"a token that is not base64", "/ignition", "Bearer %%%", 401, "", nil, []string{"Token invalid"}},
		{"an unknown token is told to come back", "/ignition", bearer("unknown"), 511, "", nil, []string{"Token not found in cache"}},
		{"an empty token is none: HTTP trims the blank", "/ignition", "Bearer ", 401, "", nil, []string{"Bad header"}},
		{"tokens that cannot be read", "/ignition", bearer("unreadable"), 500, "", nil, nil},
		{"health needs no token", "/healthz", "", 200, "", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			tokens := &oneToken{}
			server := httptest.NewServer(ignitionHandler(tokens))
			defer server.Close()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.authorization != "" {
				request.Header.Set("Authorization", c.authorization)
			}
			response, err := server.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != c.status || (c.body != "" && string(body) != c.body) {
				t.Errorf("answered %d %q, want %d %q", response.StatusCode, body, c.status, c.body)
			}
			if !slices.Equal(tokens.reached, c.reached) {
				t.Errorf("marked %v, want %v", tokens.reached, c.reached)
			}
			if !slices.Equal(tokens.refused, c.refused) {
				t.Errorf("told of %v, want %v", tokens.refused, c.refused)
			}
		})
	}
}

// told is the last event.
type told struct {
	record.EventRecorder
	of   runtime.Object
	says string
}

func (r *told) Event(of runtime.Object, kind, reason, message string) {
	r.of, r.says = of, kind+" "+reason+" "+message
}

// The event is on the Secret that the headers of the user data name.
func TestARefusalNamesTheTokenOfTheConfig(t *testing.T) {
	asked := http.Header{}
	asked.Set("NodePool", HostedClusterNamespace+"/"+testCluster.nodePool())
	asked.Set("TargetConfigVersionHash", testCluster.configVersion())
	var last told
	secretTokens{nil, testCluster.Namespace(), &last}.Refused(asked, "Bad header")
	want, of := testCluster.tokenSecret(nil, nil), last.of.(*corev1.Secret)
	if last.says != "Warning GetPayloadFailed Bad header" || of.Namespace != want.Namespace || of.Name != want.Name {
		t.Errorf("%q is said of %s/%s, want %s/%s", last.says, of.Namespace, of.Name, want.Namespace, want.Name)
	}
}

func TestIgnitionAcceptsWhatWorkersAreGiven(t *testing.T) {
	cfg, err := testCluster.configure(nil, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	served, err := testCluster.payload(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	userData, err := testCluster.userData(testCluster.ignitionEndpoint(nil), []byte("token"), cfg.secrets[ignitionCA.secret][ignitionCA.cert])
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"the served config": served, "the user data": userData} {
		if _, report, err := ignitionconfig.Parse(text); err != nil || len(report.Entries) > 0 {
			t.Errorf("Ignition's parser on %s: %v\n%s", name, err, report.String())
		}
	}
	parsed, _, _ := ignitionconfig.Parse(served)
	var paths []string
	for _, f := range parsed.Storage.Files {
		paths = append(paths, f.Path)
	}
	want := []string{"/usr/local/bin/setup-apiserver-ip.sh", "/etc/kubernetes/manifests/kube-apiserver-proxy.yaml", "/etc/kubernetes/kubeconfig", "/etc/kubernetes/ca.crt", "/etc/kubernetes/kubelet-ca.crt", "/etc/kubernetes/kubelet.yaml", "/etc/ignition-machine-config-encapsulated.json"}
	if !slices.Equal(paths, want) {
		t.Errorf("the served config writes %v, want %v", paths, want)
	}
	for _, f := range parsed.Storage.Files {
		if f.Contents.Source == nil || *f.Contents.Source == dataURL(nil) {
			t.Errorf("%s is empty", f.Path)
		}
	}
}
