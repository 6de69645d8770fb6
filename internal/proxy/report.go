package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/proxy/ads"
	"github.com/cldmnky/oooi/internal/proxy/intent"
)

// Names of the readiness checks.
const (
	checkConfiguration = "configuration"
	checkListeners     = "listeners"
	checkEnvoy         = "envoy"
)

const (
	// reportPause is how often targets are counted; Envoy announces nothing. A target that is cut off first fails three checks of two seconds,
	// and the Infra must report it within ten.
	reportPause = 2 * time.Second
	// settlePause lets Envoy answer for all resource types before a verdict is reported.
	settlePause = 100 * time.Millisecond
	// dialPatience is how long the listeners may take to answer, all together.
	dialPatience = time.Second
)

// report keeps readiness, status and the stored intent up to date with Envoy.
func (p *Proxy) report(ctx context.Context) error {
	tick := time.NewTicker(reportPause)
	defer tick.Stop()
	settled := time.NewTimer(settlePause)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.ads.Changed():
			settled.Reset(settlePause)
			continue
		case <-p.refusal:
		case <-p.ready.Changed():
		case <-settled.C:
		case <-tick.C:
		}
		p.reportOnce(ctx)
	}
}

func (p *Proxy) reportOnce(ctx context.Context) {
	counts, err := p.envoy.targets(ctx)
	if err != nil {
		p.Log.Debug("targets are not counted", "error", err)
	}
	p.ready.Set(checkEnvoy, err) // a connection proves nothing: the kernel accepts it for an Envoy that hangs
	p.mu.Lock()
	told := p.told
	p.mu.Unlock()
	p.ready.Set(checkListeners, served(ctx, told)) // takes up to dialPatience; unlocked, so that no update waits
	p.mu.Lock()
	defer p.mu.Unlock()
	verdict := p.ads.Verdict()
	p.ready.Set(checkConfiguration, verdictProblem(verdict))
	if verdict.Accepted {
		p.keepTold()
	}
	if verdict.Rejection != p.rejection {
		p.rejection = verdict.Rejection
		p.Log.Warn("Envoy's answer changed", "rejection", verdict.Rejection)
	}
	if p.seen != nil && p.Instance < len(p.seen.Spec.NetworkConfig.ServerIPs()) { // what one that is to go has reported, the manager removes
		p.status.Set(p.statusNow(verdict, counts))
	}
}

func (p *Proxy) keepTold() {
	if reflect.DeepEqual(p.told, p.kept) {
		return
	}
	if err := keep(p.StateDir, p.told); err != nil {
		p.Log.Error("the acknowledged configuration is not kept", "error", err)
		return
	}
	p.kept = p.told
	p.Log.Info("configuration acknowledged by Envoy", "listeners", len(p.told.Listeners), "backends", len(p.told.Backends))
}

func verdictProblem(v ads.Verdict) error {
	switch {
	case v.Accepted:
		return nil
	case !v.Connected:
		return errors.New("Envoy has not asked for its configuration yet")
	case v.Rejection != "":
		return fmt.Errorf("Envoy refuses its configuration: %s", v.Rejection)
	default:
		return errors.New("Envoy has not acknowledged its configuration yet")
	}
}

// served returns an error if the pod lacks a captured address or a VLAN listener does not answer.
func served(ctx context.Context, told intent.Intent) error {
	if len(told.Missing) > 0 {
		return fmt.Errorf("captured address %s is on no network device of this pod; delete the pod, so that it is replaced", told.Missing[0])
	}
	return answers(ctx, told.Listeners)
}

// answers connects to all VLAN listeners at once, as a client would.
func answers(ctx context.Context, listeners []intent.Listener) error {
	if len(listeners) == 0 {
		return errors.New("nothing is served yet")
	}
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	group := &errgroup.Group{}
	for _, l := range listeners {
		if l.OnPods {
			continue
		}
		group.Go(func() error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.At.String())
			if err != nil {
				return fmt.Errorf("%s does not answer: %w", l.At, err)
			}
			return conn.Close() // an open connection is enough
		})
	}
	return group.Wait()
}

// statusNow is the sidecar's part of the status: its condition, its instance and, of the first, its backends' targets.
func (p *Proxy) statusNow(verdict ads.Verdict, counts map[string]tally) *ac.ProxyServerApplyConfiguration {
	own := p.seen.Spec.NetworkConfig.ServerIPs()[p.Instance]
	status := ac.ProxyServerStatus().
		WithConditions(daemon.Condition(p.seen.Status.Conditions, p.configAccepted(verdict))).
		WithInstances(daemon.Instance(own, p.ready.Problem()))
	for _, u := range p.unmatched.told(p.told, time.Now()) {
		status.WithUnmatchedNames(ac.UnmatchedName().WithName(u.Name).WithPort(u.Port).WithIP(own).WithLastTime(u.LastTime))
	}
	if p.Instance > 0 { // the list of backends has room for one's
		return ac.ProxyServer(p.seen.Name, p.seen.Namespace).WithStatus(status)
	}
	for _, b := range p.said.next(p.backends(counts), time.Now()) {
		one := ac.BackendStatus().WithName(b.Name).WithHealthy(b.Healthy).WithTotal(b.Total)
		if b.Message != "" {
			one.WithMessage(b.Message)
		}
		if b.Fault != nil {
			one.WithFault(ac.BackendFault().WithReason(b.Fault.Reason).WithMessage(b.Fault.Message))
		}
		status.WithBackends(one)
	}
	return ac.ProxyServer(p.seen.Name, p.seen.Namespace).WithStatus(status)
}

func (p *Proxy) configAccepted(verdict ads.Verdict) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.InstanceCondition(v1alpha1.ConditionConfigAccepted, p.Instance), ObservedGeneration: p.seen.Generation}
	switch {
	case p.refused != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Invalid", p.refused.Error()
	case verdict.Accepted:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Accepted", "Envoy runs with this configuration"
	case verdict.Rejection != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "RejectedByEnvoy", verdict.Rejection
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, "Waiting", verdictProblem(verdict).Error()
	}
	return c
}
