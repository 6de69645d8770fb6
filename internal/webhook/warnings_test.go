package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	netutil "k8s.io/apimachinery/pkg/util/net"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/preflight"
	"github.com/cldmnky/oooi/internal/render"
)

func TestAWarningIsOneLineForATerminal(t *testing.T) {
	g := NewWithT(t)
	g.Expect(warning(preflight.Finding{Code: "NoTimeSource", Field: "spec.networkConfig.ntpServers", Reason: "the VLAN has no clock"})).
		To(Equal("NoTimeSource spec.networkConfig.ntpServers: the VLAN has no clock"))
	g.Expect(warning(preflight.Finding{Code: "C", Reason: "one\ntwo\x00"})).To(Equal("C: one two "))
	g.Expect(shortened(strings.Repeat("a", 256), "rest")).To(Equal(strings.Repeat("a", 256)))
	g.Expect(shortened(strings.Repeat("a", 257), "rest")).To(And(HaveLen(256), HaveSuffix("a… (rest)")))
	g.Expect(shortened("C: "+strings.Repeat("ä", 200), "rest")).To(And(HaveLen(255), HaveSuffix("ä… (rest)")))
	g.Expect(shortened("C: one two; "+strings.Repeat("three ", 50), "rest")).To(HaveSuffix(" three… (rest)"))
	g.Expect(shortened(strings.Repeat("one ", 40)+"two; run: "+strings.Repeat("three", 40), "rest")).To(HaveSuffix(" two; run… (rest)"))
}

// Of each example the warning has all that the finding says. Of many at once each ends where a sentence does, and names an anchor that there is.
func TestNoWarningLosesItsMend(t *testing.T) {
	page, err := os.ReadFile("../../" + ofInfras)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	examples, err := filepath.Glob("../../examples/preflight/*/fails.yaml")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	cut := 0
	for _, file := range examples {
		objects, _, err := render.Files(nil, []string{file})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, r := range preflight.All(objects, input.Settings{}) {
			for _, f := range r.Findings {
				if f.Condition == finding.Provisioned {
					continue // an event
				}
				g, whole := NewWithT(t), warning(f)
				g.Expect(whole).To(HaveSuffix(f.Reason), file)
				g.Expect(warningsOf([]preflight.Finding{f}, ofInfras)).To(Equal([]string{whole}))
				many := warningsOf(slices.Repeat([]preflight.Finding{f}, most), ofInfras)
				if many[0] == whole {
					continue
				}
				cut++
				begin, rest, _ := strings.Cut(many[0], "… (")
				g.Expect(many[0]).To(WithTransform(utf8.RuneCountInString, BeNumerically("<=", widest)))
				g.Expect(whole).To(MatchRegexp("^" + regexp.QuoteMeta(begin) + "[;.: ]"))
				g.Expect(rest).To(Equal(fmt.Sprintf("whole: condition %s; what to do: docs/reference/findings.md#%s)", f.Condition, f.Code)))
				g.Expect(string(page)).To(ContainSubstring(`<a id="` + f.Code + `"></a>`))
			}
		}
	}
	NewWithT(t).Expect(cut).To(BeNumerically(">", 10))
	interruption := preflight.Finding{Code: interrupts, Reason: strings.Repeat("words ", 100)}
	NewWithT(t).Expect(warningsOf(slices.Repeat([]preflight.Finding{interruption}, most), ofInfras)).To(HaveEach(HaveSuffix(" words… (whole: oooi diff)")))
}

func TestManyFindingsAreCounted(t *testing.T) {
	g := NewWithT(t)
	g.Expect(warningsOf(make([]preflight.Finding, 10), ofInfras)).To(HaveLen(10))
	g.Expect(warningsOf(make([]preflight.Finding, 11), ofInfras)).To(And(HaveLen(10), ContainElement(HavePrefix("2 more findings: "))))
}

func TestTheWorstIsWarnedOfFirst(t *testing.T) {
	f := func(code string, s finding.Severity) preflight.Finding {
		return preflight.Finding{Code: code, Severity: s}
	}
	all := []preflight.Finding{f("Note", finding.Warning), f("Awaited", finding.Waiting), f("Many", finding.Refused), f("Many", finding.Refused), f("Off", finding.Failing)}
	NewWithT(t).Expect(warningsOf(all, ofInfras)).To(Equal([]string{"Many: ", "Off: ", "Many: ", "Awaited: ", "Note: "}))
}

// The API server drops what exceeds 4096 bytes, from the end (apiserver, pkg/endpoints/filters/warning.go).
func TestWhatIsSwitchedOffIsWarnedOf(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(errors.Join(v1alpha1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme))).To(Succeed())
	var outside []v1alpha1.Reservation
	for i := range 20 {
		ip, mac := v1alpha1.IPv4Address(fmt.Sprintf("10.9.9.%d", 50+i)), v1alpha1.ClientMAC(fmt.Sprintf("52:54:00:00:00:%02d", i))
		outside = append(outside, v1alpha1.Reservation{IP: ip, MAC: mac})
	}
	live := fake.NewClientBuilder().WithScheme(scheme).Build()
	o := &observe.Observer{Reader: live, Live: live, Kinds: observe.NewKinds(true, true), Listeners: observe.NewListeners(), Now: time.Now}
	r := reviewer{observer: o, plan: plan.Infra, scheme: scheme, decoder: admission.NewDecoder(scheme), log: logr.Discard()}
	off := v1alpha1.InfraComponents{}
	off.DHCP.Enabled, off.DNS.Enabled, off.Proxy.Enabled = ptr.To(false), ptr.To(false), ptr.To(false)
	for code, components := range map[string]v1alpha1.InfraComponents{
		"ProxyDisabled": {Proxy: off.Proxy}, "DNSDisabled": {DNS: off.DNS}, "ComponentsDisabled": off,
	} {
		for name, reservations := range map[string][]v1alpha1.Reservation{"alone": nil, "beside addresses of elsewhere": outside} {
			t.Run(code+" "+name, func(t *testing.T) {
				g := NewWithT(t)
				infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}}
				infra.Spec.NetworkConfig.CIDR, infra.Spec.NetworkConfig.NetworkAttachmentDefinition = "192.168.100.0/24", "vlan"
				infra.Spec.InfraComponents = components
				infra.Spec.InfraComponents.DHCP.Reservations = reservations
				text, err := json.Marshal(infra)
				g.Expect(err).NotTo(HaveOccurred())
				answer := r.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
					Kind: metav1.GroupVersionKind(v1alpha1.GroupVersion.WithKind("Infra")), Object: runtime.RawExtension{Raw: text},
				}})
				g.Expect(answer.Warnings).To(ContainElement(HavePrefix(code + " ")))
				g.Expect(len(strings.Join(answer.Warnings, ""))).To(BeNumerically("<=", 4096))
			})
		}
	}
}

// Whatever a finding says, the API server can pass it on (net/http.go, NewWarningHeader).
func TestEveryWarningFitsAHeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		octets := rapid.SliceOfN(rapid.Byte(), 0, 400)
		f := preflight.Finding{Code: "C", Field: string(octets.Draw(t, "field")), Reason: string(octets.Draw(t, "reason")) + rapid.String().Draw(t, "more")}
		for _, text := range []string{warning(f), shortened(warning(f), "rest")} {
			if _, err := netutil.NewWarningHeader(299, "-", text); err != nil {
				t.Fatalf("%v: %q", err, text)
			}
		}
	})
}

// stuck is a cache that never answers.
type stuck struct{ client.Reader }

func (stuck) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s stuck) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	return s.Get(ctx, client.ObjectKey{}, nil)
}

func TestReadsThatHangHoldNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, began := NewWithT(t), time.Now()
		r := reviewer{observer: &observe.Observer{Reader: stuck{}, Kinds: observe.NewKinds(true, true)}, log: logr.Discard()}
		answer := httptest.NewRecorder()
		newGate(handlerOf(admission.HandlerFunc(func(ctx context.Context, _ admission.Request) admission.Response {
			return admission.Allowed("").WithWarnings(r.warnings(ctx, nil, &v1alpha1.Infra{})...)
		}), logr.Discard())).ServeHTTP(answer, posted("192.0.2.1:1", review))
		g.Expect(answer.Body.String()).To(ContainSubstring(notJudged))
		g.Expect(time.Since(began)).To(Equal(patience))
	})
}

// review is a request as the API server makes it.
const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","kind":{"group":"g","version":"v1","kind":"K"},"object":{}}}`

// A panic turned into an answer would be a refusal; ending the connection lets the write through.
func TestAPanicIsNoAnswer(t *testing.T) {
	server := httptest.NewServer(handlerOf(admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { panic(errors.New("ours")) }), logr.Discard()))
	defer server.Close()
	answer, err := http.Post(server.URL, "application/json", bytes.NewBufferString(review))
	if err == nil {
		answer.Body.Close()
		t.Fatalf("answered with %s", answer.Status)
	}
}

func TestWhatCannotBeReadIsLetThrough(t *testing.T) {
	g, scheme := NewWithT(t), runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	r := reviewer{observer: &observe.Observer{}, scheme: scheme, decoder: admission.NewDecoder(scheme), log: logr.Discard()}
	for _, kind := range []string{"Infra", "Unheard"} {
		answer := r.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Kind: metav1.GroupVersionKind(v1alpha1.GroupVersion.WithKind(kind)), Object: runtime.RawExtension{Raw: []byte(`{"spec":1}`)},
		}})
		g.Expect(answer.Allowed).To(BeTrue())
	}
}

// Trying out a thousand Infras leaves nothing behind in the manager.
func TestAnInfraThatIsNotStoredHearsOfNothing(t *testing.T) {
	g, scheme := NewWithT(t), runtime.NewScheme()
	g.Expect(errors.Join(v1alpha1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme))).To(Succeed())
	none := fake.NewClientBuilder().WithScheme(scheme).Build()
	o := &observe.Observer{Reader: none, Live: none, Kinds: observe.NewKinds(true, true), Listeners: observe.NewListeners(), Now: time.Now}
	infra := &v1alpha1.Infra{}
	infra.Namespace, infra.Spec.InfraComponents.Proxy.ControlPlaneNamespace = "tenant", "clusters-c1"
	g.Expect(reviewer{observer: o, plan: plan.Infra, log: logr.Discard()}.warnings(t.Context(), nil, infra)).To(ContainElement(HavePrefix("RefNotPermitted")))
	g.Expect(o.Listeners.Of("clusters-c1")).To(BeEmpty())
}

// An admission has 2 seconds: a new Infra is planned once, and a changed one once as it is and once as it would be.
func TestAnInfraIsPlannedOnceForEachOfItsStates(t *testing.T) {
	g, scheme := NewWithT(t), runtime.NewScheme()
	g.Expect(errors.Join(v1alpha1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme))).To(Succeed())
	var planned []string
	none := fake.NewClientBuilder().WithScheme(scheme).Build()
	r := reviewer{log: logr.Discard(), observer: &observe.Observer{Reader: none, Live: none, Kinds: observe.NewKinds(true, true), Listeners: observe.NewListeners(), Now: time.Now}}
	r.plan = func(in input.Input) plan.InfraPlan {
		planned = append(planned, string(in.Infra.Spec.NetworkConfig.CIDR))
		return plan.Infra(in)
	}
	before := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1", UID: "1"}}
	before.Spec.NetworkConfig.CIDR, before.Spec.NetworkConfig.NetworkAttachmentDefinition = "192.168.100.0/24", "vlan"
	after := before.DeepCopy()
	after.Spec.NetworkConfig.CIDR = "192.168.200.0/24"
	r.warnings(t.Context(), nil, after)
	g.Expect(planned).To(Equal([]string{"192.168.200.0/24"}))
	planned = nil
	r.warnings(t.Context(), before, after)
	g.Expect(planned).To(Equal([]string{"192.168.200.0/24", "192.168.100.0/24"}))
}
