package workload

import (
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
)

// lost are the pods whose address has to come up on another node: nobody finds it on the VLAN, as all DNS instances agree; or else its node
// is lost, and no DNS instance that serves finds it. A proxy that is only cut off from the API server keeps its address.
func (in Child[T]) lost() (all []RunningPod, later bool) {
	serves, _ := component.Of(in.Server)
	ips := serves.Written(in.Server).ServerIPs()
	for i, instance := range in.instances() {
		for _, pod := range instance.Pods {
			gone := in.isGone(ips[i]) || pod.Stranded && !in.isFound(ips[i])
			if gone && pod.Settled {
				all = append(all, pod)
			}
			later = later || gone && !pod.Settled
		}
	}
	return all, later
}

// isGone says whether one DNS instance has lost an address, and no other finds it. One that says nothing, as an older release does, may find it.
func (in Child[T]) isGone(ip v1alpha1.IPAddress) bool {
	isLost := false
	for _, l := range in.Lookouts {
		state := l.state(ip)
		if state == "" || state == v1alpha1.HealthConfirmed {
			return false
		}
		isLost = isLost || state == v1alpha1.HealthLost
	}
	return isLost && len(in.Lookouts) > 1
}

// isFound says whether a DNS instance that serves finds an address.
func (in Child[T]) isFound(ip v1alpha1.IPAddress) bool {
	return slices.ContainsFunc(in.Lookouts, func(l Lookout) bool {
		return l.Serves && (l.state(ip) == v1alpha1.HealthAnswers || l.state(ip) == v1alpha1.HealthConfirmed)
	})
}

func (l Lookout) state(ip v1alpha1.IPAddress) v1alpha1.HealthState {
	i := slices.IndexFunc(l.Health, func(h v1alpha1.Health) bool { return h.IP == ip })
	if i < 0 {
		return ""
	}
	return l.Health[i].State
}
