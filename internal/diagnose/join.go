package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/step"
)

const (
	// requestTakes is how long a worker may take from its lease to its CSR: RHCOS changes its operating system and boots again in between.
	requestTakes = 15 * time.Minute
	// nodeTakes is how long it may take from there to a Node, and from there to Ready.
	nodeTakes = 5 * time.Minute
	// tunnelTakes is how long it may take until the control plane reaches the kubelet of a Node that is Ready: it waits for another certificate, and
	// for konnectivity's agent.
	tunnelTakes = time.Minute
	// approvalTakes is how long HyperShift's machine approver may take.
	approvalTakes = time.Minute
	// heartbeat is how often a kubelet reports (pkg/kubelet/kubelet.go: a quarter of nodeLeaseDurationSeconds), and half of that.
	heartbeat = 15 * time.Second
	// oldestToken is the age at which a token of Ignition is removed (HyperShift, ignition-server: the TokenSecret controller keeps it for its TTL of 11 hours).
	oldestToken = 11 * time.Hour
)

// ignition looks at what Ignition is answered with. What a worker was answered is inside TLS, and nobody here sees it.
func ignition(w worker, f Facts) step.Step {
	pool := f.pool(w)
	switch {
	case w.machine == nil:
		return skip("its user data is not known here")
	case f.NodePools.Unread != "":
		return unread("NodePools", f.NodePools.Unread)
	case pool == nil:
		return fail(noToken, "delete the machine, or create its NodePool again", "its NodePool %s does not exist", w.machine.Pool)
	}
	for _, c := range pool.Status.Conditions {
		if c.Type == hyperv1.NodePoolValidGeneratedPayloadConditionType && c.Reason == invalidConfig {
			return fail(payloadInvalid, "kubectl -n "+pool.Namespace+" describe nodepool "+pool.Name, "HyperShift has no Ignition config for NodePool %s: %s", pool.Name, c.Message)
		}
	}
	if f.Ignition.Unread != "" {
		return unread("the ignition server's endpoints", f.Ignition.Unread)
	}
	if f.ignitionIsDown() {
		return f.noIgnition()
	}
	if fails, found := f.ignitionFails(); found {
		return fails
	}
	if f.Tokens.Unread != "" {
		return unread("Ignition's tokens", f.Tokens.Unread)
	}
	return f.token(w, pool)
}

// invalidConfig is the reason of a config of which Ignition's server makes nothing. Its status is empty then; False means that the token's Secret
// was not found, or not read (HyperShift v0.1.60, nodepool/conditions.go, createValidGeneratedPayloadCondition).
const invalidConfig = "InvalidConfig"

// ignitionIsDown says whether Ignition's Service has pods or wants them, and none is ready. HyperShift's front has no probe and answers 503 then
// (v0.1.60, assets/ignition-server-proxy/deployment.yaml); one that has a probe is not ready either.
func (f Facts) ignitionIsDown() bool {
	return len(f.Ignition.Is) > 0 && !slices.Contains(f.Ignition.Is, true)
}

func (f Facts) noIgnition() step.Step {
	return fail(ignitionDown, "kubectl -n "+f.controlPlane()+" describe pods -l app=ignition-server", "no pod behind Service %s/ignition-server is ready: its front has nobody to ask", f.controlPlane())
}

// token looks at the Secrets of all configs of a NodePool: while it replaces its machines, its annotation names the old config, whose token
// expires (HyperShift, nodepool/token.go).
func (f Facts) token(w worker, pool *hyperv1.NodePool) step.Step {
	ours := slices.DeleteFunc(slices.Clone(f.Tokens.Is), func(o metav1.ObjectMeta) bool { return !isTokenOf(pool.Name, o.Name) })
	if len(ours) == 0 {
		return fail(noToken, fmt.Sprintf("kubectl -n %s describe nodepool %s: HyperShift makes the token; if it says nothing, restart its operator", pool.Namespace, pool.Name),
			"no Secret token-%s-* is in %s: the ignition server answers 511 (Token not found)", pool.Name, f.controlPlane())
	}
	if hasAsked(w, f) {
		return ok("it has fetched its Ignition config, and asked for a certificate")
	}
	valid := slices.IndexFunc(ours, func(o metav1.ObjectMeta) bool { until, does := expires(o); return !does || !until.Before(f.Now) })
	if valid < 0 {
		if f.Hosted.Unread != "" { // nobody is told to delete a machine that may have joined
			return unread("its token has expired, which matters only to a worker that has not joined: the hosted cluster", f.Hosted.Unread)
		}
		until, _ := expires(ours[0])
		return fail(tokenExpired, remake(f, w), "the token in Secret %s expired at %s", ours[0].Name, until.UTC().Format(time.RFC3339))
	}
	if age := f.Now.Sub(w.machine.Created); age > oldestToken && f.Hosted.Unread == "" {
		return fail(tokenExpired, remake(f, w), "the machine was created %s ago and has never joined: the token in its user data lives for %s, and then the ignition server answers 511", age.Round(time.Minute), oldestToken)
	}
	if refused, found := f.refused(w, pool.Name); found {
		return refused
	}
	reached := "no machine has fetched its config yet"
	if slices.ContainsFunc(ours, func(o metav1.ObjectMeta) bool { return o.Annotations[ignitionReached] == "True" }) {
		reached = "a machine has fetched its config"
	}
	return ok("Ignition has a token for NodePool %s (%s): %s", pool.Name, ours[valid].Name, reached)
}

// isTokenOf says whether a Secret has the name of a token of a NodePool, and not of another whose name begins alike; in an event, a guest's request
// may have written anything.
func isTokenOf(pool, secret string) bool {
	hash, is := strings.CutPrefix(secret, "token-"+pool+"-")
	return is && !strings.Contains(hash, "-") && len(validation.IsDNS1123Label(hash)) == 0
}

// expires is when a token does, if that is decided.
func expires(o metav1.ObjectMeta) (until time.Time, does bool) {
	until, err := time.Parse(time.RFC3339, o.Annotations[hyperv1.IgnitionServerTokenExpirationTimestampAnnotation])
	return until, err == nil
}

func remake(f Facts, w worker) string {
	return fmt.Sprintf("kubectl -n %s delete machines.cluster.x-k8s.io %s: its NodePool makes another, with a new token", f.controlPlane(), w.name)
}

// ignitionReached is set on the Secret by the ignition server (hypershift ignition-server/cmd/start.go).
const ignitionReached = "hypershift.openshift.io/ignition-reached"

func (f Facts) pool(w worker) *hyperv1.NodePool {
	if w.machine == nil {
		return nil
	}
	i := slices.IndexFunc(f.NodePools.Is, func(p hyperv1.NodePool) bool { return p.Name == w.machine.Pool })
	if i < 0 {
		return nil
	}
	return &f.NodePools.Is[i]
}

// requests are a worker's CSRs for its client certificate, the newest first.
func (w worker) requests(f Facts) (all []Request) {
	for _, r := range f.Hosted.Is.Requests {
		if r.Kind == csr.Bootstrap && r.Host == w.name && !r.Created.Before(w.started()) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Request) int { return b.Created.Compare(a.Created) })
	return all
}

func certificate(w worker, f Facts) step.Step {
	if f.Hosted.Unread != "" {
		return unread("the hosted cluster", f.Hosted.Unread)
	}
	if hasNode(w, f) {
		return ok("its kubelet has a certificate")
	}
	all := w.requests(f)
	if len(all) == 0 {
		return f.unasked(w)
	}
	approve := "kubectl -n " + f.controlPlane() + " logs deployment/machine-approver says why it is not approved"
	if len(validation.IsDNS1123Subdomain(all[0].Name)) == 0 { // the hosted cluster chose it, and somebody will paste the command
		approve += "; in the hosted cluster: oc adm certificate approve " + all[0].Name
	}
	switch r := all[0]; {
	case r.Decided == certv1.CertificateDenied:
		return fail(requestDenied, "find out who denied it; then restart the machine", "CSR %s was denied: %s", r.Name, r.Because)
	case r.Decided == certv1.CertificateApproved:
		return ok("its kubelet asked %s (CSR %s), and was approved", w.after(r.Created), r.Name)
	case f.Now.Sub(r.Created) < approvalTakes:
		return waits("its kubelet asked %s (CSR %s), and nobody has decided yet", w.after(r.Created), r.Name)
	default:
		return fail(requestPending, approve, "its kubelet asked %s, and CSR %s is pending since", w.after(r.Created), r.Name)
	}
}

// unasked finds out why a worker that has all it needs has not asked for a certificate.
func (f Facts) unasked(w worker) step.Step {
	known := map[string]bool{}
	for _, m := range f.Machines.Is {
		known[m.Name] = true
	}
	for _, r := range f.Hosted.Is.Requests {
		if r.Kind == csr.Bootstrap && r.Decided == "" && !known[r.Host] && w.machine != nil && !r.Created.Before(w.started()) {
			return fail(otherName, "restart the machine that calls itself so: it takes its name from DHCP when it boots", "no kubelet asked as %s, and one asks as %q, which no machine is called (CSR %s)", w.name, r.Host, r.Name)
		}
	}
	if w.lease == nil && f.Leases.Unread == "" && (f.DHCP.Unread != "" || f.DHCP.Is != nil) {
		return waits("no kubelet has asked for a certificate as %s: it has no lease", w.name)
	}
	since := w.started()
	if w.lease != nil && w.lease.CreationTimestamp.After(since) {
		since = w.lease.CreationTimestamp.Time
	}
	if took := f.Now.Sub(since); took < requestTakes {
		return waits("no kubelet has asked for a certificate as %s yet, %s after its lease: it fetches its Ignition config, or installs its operating system%s", w.name, took.Round(time.Second), w.did(v1alpha1.BootStages[:]...))
	}
	return fail(noRequest, fmt.Sprintf("read its console (virtctl -n %s console %s): a certificate that is not valid yet or not trusted is a wrong clock, or user data of another cluster", f.controlPlane(), w.name),
		"no kubelet has asked for a certificate as %s, %s after its lease; names, proxy and backends are there for it%s", w.name, f.Now.Sub(since).Round(time.Second), w.did(v1alpha1.BootStages[:]...))
}

func node(w worker, f Facts) step.Step {
	if f.Hosted.Unread != "" {
		return unread("its Node", f.Hosted.Unread)
	}
	n, is := f.Hosted.Is.Nodes[w.name]
	if !is {
		if r := w.requests(f)[0]; f.Now.Sub(r.Created) < nodeTakes {
			return waits("its certificate was asked for %s, and it has no Node yet", w.after(r.Created))
		}
		return fail(noNode, "read its kubelet's log on the console", "its certificate was approved, and its kubelet has made no Node %s", w.name)
	}
	console := fmt.Sprintf("virtctl -n %s console %s", f.controlPlane(), w.name)
	switch quiet := f.Now.Sub(n.Heartbeat); {
	case !n.Heartbeat.IsZero() && n.Heartbeat.Before(w.started()) && w.runs(f) < requestTakes:
		return waits("it was started again at %s, and its kubelet has not reported since", w.started().UTC().Format(time.RFC3339))
	case !n.Heartbeat.IsZero() && n.Ready.Status == corev1.ConditionUnknown: // its control plane has missed it; our clock may be another
		return fail(nodeSilent, "see whether it runs, and what its kubelet says: "+console, "its kubelet reported last at %s, %s ago", n.Heartbeat.UTC().Format(time.RFC3339), quiet.Round(time.Second))
	case n.Ready.Status == corev1.ConditionTrue:
		return ok("Node %s is Ready, %s", w.name, w.after(n.Ready.LastTransitionTime.Time))
	case f.Now.Sub(n.Created) < nodeTakes:
		return waits("Node %s is not Ready yet: %s", w.name, n.Ready.Message)
	default:
		return fail(nodeNotReady, "mend what the kubelet says", "Node %s is not Ready: %s", w.name, cmp.Or(n.Ready.Message, n.Ready.Reason))
	}
}

func tunnel(w worker, f Facts) step.Step {
	if f.Hosted.Unread != "" {
		return unread("konnectivity", f.Hosted.Unread)
	}
	why, asked := f.Hosted.Is.Tunnels[w.name]
	n := f.Hosted.Is.Nodes[w.name]
	quiet := f.Now.Sub(n.Heartbeat)
	switch {
	case !asked:
		return skip("konnectivity was not tried")
	case why != "" && quiet > heartbeat:
		return waits("the control plane does not reach its kubelet, which has not reported for %s either", quiet.Round(time.Second))
	case why != "" && !n.Agent.Created.IsZero() && !n.Agent.Ready && f.Now.Sub(n.Agent.Created) < nodeTakes:
		return waits("konnectivity's agent on it starts since %s", n.Agent.Created.UTC().Format(time.RFC3339))
	case why != "" && f.Now.Sub(n.Ready.LastTransitionTime.Time) < tunnelTakes:
		return waits("its Node became Ready %s, and the control plane does not reach its kubelet yet", w.after(n.Ready.LastTransitionTime.Time))
	case why != "" && n.Agent.Created.IsZero():
		return fail(noTunnel, "in the hosted cluster: kubectl -n kube-system describe daemonset konnectivity-agent", "the control plane does not reach its kubelet, and no agent of konnectivity runs on it: %s", why)
	case why != "":
		return fail(noTunnel, "in the hosted cluster: kubectl -n kube-system get pods -l app=konnectivity-agent -o wide; its log names the server that it cannot reach", "the control plane does not reach its kubelet through konnectivity: %s", why)
	}
	return ok("the control plane reaches its kubelet through konnectivity")
}
