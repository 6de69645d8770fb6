package picture_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/picture"
	"github.com/cldmnky/oooi/internal/plan/dpu"
	"github.com/cldmnky/oooi/internal/step"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

// written is a document without its style, which is a file.
func written(t *testing.T, d picture.Document) string {
	t.Helper()
	var out bytes.Buffer
	NewWithT(t).Expect(d.Write(&out)).To(Succeed())
	text := out.String()
	NewWithT(t).Expect(strings.Count(text, string(picture.Style))).To(Equal(1))
	return strings.Replace(text, string(picture.Style), "", 1)
}

func TestABrowserShowsTheInfra(t *testing.T) {
	for name, f := range scenes {
		t.Run(name, func(t *testing.T) {
			golden.Compare(t, "testdata/"+name+".html", written(t, picture.Of(f).Document()))
		})
	}
}

func TestABrowserShowsOneWorkerAndAllInfras(t *testing.T) {
	golden.Compare(t, "testdata/worker.html", written(t, picture.Of(broken()).Worker("c1-x-ignites")))
	at := metav1.NewTime(ago(time.Hour))
	overview := picture.Overview{
		Infras:  []picture.Line{picture.LineOf(broken().Infra), picture.LineOf(empty().Infra)},
		Bridges: []picture.Bridge{{Namespace: "clusters", Name: "dpu1", Ready: step.OK, DPUs: []dpu.Row{{Namespace: "dpf", Name: "dpu-1", Phase: "Ready", Template: "bfcfg-dpu1-0123456789", OSInstalled: &at, Approved: &at, NodeReady: &at}, {Namespace: "dpf", Name: "dpu-2", Phase: "Rebooting", OSInstalled: &at, WaitsFor: "its CSR waits"}}, Requests: picture.RequestsOf(asking(at))}},
	}
	golden.Compare(t, "testdata/overview.html", written(t, overview.Document()))
}

// asking is a bridge with a request that waits and one that was approved.
func asking(at metav1.Time) *dpuv1.DPUHCPBridge {
	later := metav1.NewTime(at.Add(7 * time.Second))
	return &dpuv1.DPUHCPBridge{Status: dpuv1.DPUHCPBridgeStatus{CertificateRequests: []dpuv1.CertificateRequest{
		{Name: "csr-2", Host: "dpu-2", Kind: dpuv1.BootstrapRequest, CreationTime: at, RefusedBy: "NodeInactive"},
		{Name: "csr-1", Host: "dpu-1", Kind: dpuv1.ServingRequest, CreationTime: at, ApprovalTime: &later},
	}}}
}

// What others have written is text, whatever it would like to be: all elements, attributes and addresses are ours.
func TestNamesAreTextOnly(t *testing.T) {
	g := NewWithT(t)
	p := picture.Of(hostile())
	pages := []picture.Document{p.Document(), picture.Overview{Infras: []picture.Line{picture.LineOf(hostile().Infra)}}.Document()}
	for _, w := range p.Workers {
		pages = append(pages, p.Worker(w.Name))
	}
	g.Expect(pages).To(HaveLen(4))
	for _, d := range pages {
		root, err := html.Parse(strings.NewReader(written(t, d)))
		g.Expect(err).NotTo(HaveOccurred())
		for n := range root.Descendants() {
			if n.Type != html.ElementNode {
				continue
			}
			g.Expect(n.Data).NotTo(BeElementOf("img", "iframe", "object", "embed", "form", "base"))
			if n.Data == "style" {
				g.Expect(n.FirstChild).To(BeNil(), "more than ours")
			}
			for _, a := range n.Attr {
				g.Expect(a.Key).NotTo(HavePrefix("on"), "%s %s", n.Data, a.Val)
				g.Expect(a.Key).NotTo(Equal("style"))
				if a.Key == "href" || a.Key == "src" {
					g.Expect(a.Val).To(Or(HavePrefix("../"), HavePrefix("./"), HavePrefix("#"), Equal("data:,")), n.Data)
				}
				if n.Data == "script" {
					g.Expect(a).To(Or(HaveField("Key", "defer"), HaveField("Val", HaveSuffix("../live.js")), HaveField("Val", "./live.js")))
				}
			}
		}
	}
}

func TestOnlyWhatHasChangedIsSent(t *testing.T) {
	g := NewWithT(t)
	before := broken()
	old := picture.Of(before).Document().Sections
	g.Expect(picture.Changes(old, picture.Of(before).Document().Sections)).To(BeEmpty())

	leases(&before, "c1-x-starts", 10, noon)
	ids := func(parts []picture.Part) (all []string) {
		for _, p := range parts {
			all = append(all, p.ID)
		}
		return all
	}
	now := picture.Of(before).Document().Sections
	g.Expect(ids(picture.Changes(old, now))).To(ConsistOf("summary", "vlan", "w-c1-x-starts", "pool"))
	boots(&before, "c1-x-new", 40, noon)
	later := picture.Of(before).Document().Sections
	g.Expect(ids(picture.Changes(now, later))).To(ContainElement("wall"), "a row more")
	g.Expect(ids(picture.Changes(nil, later))).To(Equal([]string{"summary", "vlan", "wall", "names", "requests", "services", "pool"}), "nothing is known of what the browser has")
}

// A browser replaces the sections that it has: those of a document are always the same.
func TestTheFirstBridgeIsShownWhereNoneWas(t *testing.T) {
	g := NewWithT(t)
	none, one := picture.Overview{}.Document(), picture.Overview{Bridges: []picture.Bridge{{Namespace: "clusters", Name: "dpu1", Ready: step.OK}}}.Document()
	changes := picture.Changes(none.Sections, one.Sections)
	g.Expect(changes).To(ConsistOf(HaveField("ID", "bridges")))
	g.Expect(written(t, none)).To(And(ContainSubstring(`id="bridges"`), Not(ContainSubstring("<h2>Bridges"))))
	g.Expect(string(changes[0].HTML)).To(And(ContainSubstring("<h2>Bridges"), ContainSubstring("clusters/dpu1")))
	g.Expect(picture.Changes(one.Sections, none.Sections)).To(ConsistOf(HaveField("ID", "bridges")), "and taken away after the last")
}

func TestOfAThousandWorkersAndMoreSomeAreCountedOnly(t *testing.T) {
	g := NewWithT(t)
	p := picture.Of(healthy(1002))
	g.Expect(p.Count).To(Equal(map[picture.State]int{picture.Joined: 1002}))
	page := written(t, p.Document())
	g.Expect(strings.Count(page, "<tr id=")).To(Equal(1000))
	g.Expect(page).To(And(ContainSubstring("Workers: 1002 joined."), ContainSubstring("<p>2 more workers are not drawn: see oooi diagnose.</p>")))
	g.Expect(text(t, healthy(1002))).To(ContainSubstring("\n  2 more workers are not drawn: see oooi diagnose\n"))
	g.Expect(text(t, healthy(1001))).To(ContainSubstring("\n  1 more worker is not drawn: see oooi diagnose\n"))
	g.Expect(text(t, healthy(1000))).NotTo(ContainSubstring("not drawn"))
	g.Expect(p.Workers).NotTo(ContainElement(HaveField("Name", "c1-w999")), "it is the last by name")
	g.Expect(written(t, p.Worker("c1-w999"))).To(ContainSubstring("no worker of this name now, or it is not drawn: see oooi diagnose."))
	g.Expect(written(t, picture.Of(healthy(1)).Worker("c1-w999"))).To(ContainSubstring("no worker of this name now.</p>"))
}

// 500 workers are a quarter of a megabyte, which any browser paints at once.
func TestManyWorkersAreASmallPage(t *testing.T) {
	g := NewWithT(t)
	text := written(t, picture.Of(healthy(500)).Document())
	g.Expect(strings.Count(text, "<tr id=")).To(Equal(500))
	g.Expect(len(text)).To(BeNumerically("<", 512<<10), fmt.Sprint(len(text)))
}
