package change

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// Notice is what workers and other clients notice.
type Notice struct {
	Says string `json:"says"`
	// Interrupts: those that run now are interrupted.
	Interrupts bool `json:"interrupts,omitempty"`
}

// sayings are what workers notice of a component.
type sayings struct {
	// moved: an instance's address changes from the first to the second.
	moved string
	// off: the component is switched off.
	off string
}

var notices = map[component.Name]sayings{
	component.DHCP: {
		"DHCP moves from %s to %s: whoever renews at the old address gets no answer there, keeps its lease, and asks every server after 7/8 of its lease time",
		"no worker gets or renews a lease any more: those that run keep their addresses until their leases end",
	},
	component.DNS: {
		"DNS moves from %s to %s: workers that have the old address ask it until they renew their lease, at half of its time",
		"workers resolve no names any more",
	},
	component.Proxy: {
		"the proxy moves from %s to %s: streams through the old address end, and workers connect to the new one once DNS has told them",
		"all streams of workers to the control plane end, and none begins any more",
	},
}

// clients says what workers and other clients notice of a component.
func clients(now, then rollout, pods []Pod) (all []Notice) {
	says := notices[now.part.Name]
	switch {
	case now.Server == nil || !anyRuns(now):
		return nil
	case then.Server == nil:
		return []Notice{{says.off, true}}
	}
	for number := range now.running {
		was, is := now.ip(number), then.ip(number)
		switch {
		case was != "" && is == "":
			all = append(all, Notice{fmt.Sprintf("nobody answers at %s (%s) any more", was, now.part.Name), true})
		case was != "" && was != is:
			all = append(all, Notice{fmt.Sprintf(says.moved, was, is), true})
		}
	}
	return slices.Concat(all, streams(now, then, pods), heard(now, then), routes(now, then))
}

// streams that end: all that go through a proxy's pod end with it.
func streams(now, then rollout, pods []Pod) (all []Notice) {
	if now.part.Name != component.Proxy {
		return nil
	}
	for number := range now.running {
		ends := slices.ContainsFunc(pods, func(p Pod) bool { return p.Verb == Replace && p.IP == then.ip(number) })
		if !ends || now.ip(number) != then.ip(number) {
			continue
		}
		next := "when the new pod serves"
		if len(pods) > 1 && now.runs(1-number) {
			next = "at once through " + then.ip(1-number)
		}
		all = append(all, Notice{fmt.Sprintf("every stream through %s ends with its pod; kubelets and konnectivity agents connect again, %s", now.ip(number), next), true})
	}
	if captures(now) && len(all) > 0 {
		all = append(all, Notice{"streams to an address of the control plane that the first proxy carries wait for that proxy's new pod", true})
	}
	return all
}

// heard says when DHCP clients hear of what changes for them.
func heard(now, then rollout) []Notice {
	was, is := spec[v1alpha1.DHCPServer](now), spec[v1alpha1.DHCPServer](then)
	if was == nil || is == nil {
		return nil
	}
	before, after := was.Spec.DeepCopy(), is.Spec.DeepCopy()
	for _, s := range []*v1alpha1.DHCPServerSpec{before, after} { // what is not sent to clients
		s.Placement, s.Image, s.NetworkConfig.Attachment = v1alpha1.Placement{}, "", v1alpha1.Attachment{}
		s.NetworkConfig.ServerIP, s.NetworkConfig.AdditionalServerIPs = "", nil
		s.ExcludeRanges, s.LeaseConfig.RangeStart, s.LeaseConfig.RangeEnd = nil, "", ""
	}
	if string(desired.Encoded(before)) == string(desired.Encoded(after)) {
		return nil
	}
	return []Notice{{Says: fmt.Sprintf("DHCP needs no new pod for what it sends: a client hears of it when it renews its lease, at half of the time that it was given (%s) at the latest", leaseTime(was))}}
}

func leaseTime(s *v1alpha1.DHCPServer) string {
	if d := s.Spec.LeaseConfig.LeaseTime.Duration; d > 0 {
		return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
	}
	return "the default"
}

// routes of a proxy that go or lead elsewhere.
func routes(now, then rollout) (all []Notice) {
	was, is := spec[v1alpha1.ProxyServer](now), spec[v1alpha1.ProxyServer](then)
	if was == nil || is == nil {
		return nil
	}
	for _, b := range was.Spec.Backends {
		i := slices.IndexFunc(is.Spec.Backends, func(o v1alpha1.ProxyBackend) bool { return o.Name == b.Name })
		switch {
		case i < 0:
			all = append(all, Notice{Says: fmt.Sprintf("route %s (port %d) goes: nobody connects by it any more, and streams that are open stay", b.Name, b.Port)})
		case string(desired.Encoded(is.Spec.Backends[i])) != string(desired.Encoded(b)):
			all = append(all, Notice{Says: fmt.Sprintf("route %s (port %d) changes for new connections; streams that are open stay", b.Name, b.Port)})
		}
	}
	return all
}

func spec[T any](r rollout) *T {
	s, _ := any(r.Server).(*T)
	return s
}

// Interruptions are what interrupts workers that run.
func (c Change) Interruptions() (all []string) {
	for _, s := range c.Services {
		switch s.Effect {
		case Away:
			all = append(all, fmt.Sprintf("%s is away for about %d s: %s", s.Component, s.Seconds, s.Why))
		case Ends:
			all = append(all, fmt.Sprintf("%s ends: %s", s.Component, s.Why))
		}
	}
	for _, n := range c.Clients {
		if n.Interrupts {
			all = append(all, n.Says)
		}
	}
	return all
}
