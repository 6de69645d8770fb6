package draft

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// Result is what a site becomes.
type Result struct {
	Infra *v1alpha1.Infra
	// Left is what the Infra does not have, in the order of the files.
	Left []Left
	// Missing is what must be written into the Infra before it can be applied.
	Missing []string
}

// Cluster is what is known of the hosted cluster: its domain, and the names that the operator serves for it. Of both, the files say something
// if nothing is known.
type Cluster struct {
	Domain string
	Names  []string
}

// Infra adds what the files say to an Infra that may be empty. What that Infra says already stays.
func (s Site) Infra(base *v1alpha1.Infra, cluster Cluster) Result {
	m := &maker{Site: s, infra: base.DeepCopy(), domain: cmp.Or(cluster.Domain, s.domain()), served: cluster.Names, from: map[string]string{}, taken: map[netip.Addr]string{}, added: map[string]bool{}}
	m.leases()
	m.servers()
	m.endpoints()
	m.names()
	m.complete()
	told := map[Left]bool{} // of a backend for several ports, once
	m.Left = slices.DeleteFunc(m.Left, func(l Left) bool { before := told[l]; told[l] = true; return before })
	slices.SortStableFunc(m.Left, func(a, b Left) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Number, b.Number)) })
	return Result{m.infra, m.Left, m.missing}
}

// maker makes one Infra.
type maker struct {
	Site
	infra  *v1alpha1.Infra
	domain string   // of the hosted cluster; empty if nobody says it
	served []string // names of its control plane
	cidr   netip.Prefix
	// from says where a field's value came from.
	from map[string]string
	// taken says which service has an address of a server that goes.
	taken map[netip.Addr]string
	// added are the names of endpoints that the given Infra does not have.
	added   map[string]bool
	missing []string
}

// once sets a field of which there is one. A second value is left.
func once[T comparable](m *maker, at Line, path string, field *T, value T) {
	var unset T
	switch *field {
	case unset:
		*field, m.from[path] = value, at.Where()
	case value:
	default:
		m.Leave(at, "%s is %v already (%s), and there is one: change it there if this is right", path, *field, cmp.Or(m.from[path], "the given Infra"))
	}
}

// one adds to a list that has room for it, and has no such element.
func one[T any](m *maker, at Line, path string, list *[]T, most int, element T, same func(T) bool) {
	switch {
	case slices.ContainsFunc(*list, same):
	case len(*list) >= most:
		m.Leave(at, "%s has %d entries already, the most that are possible", path, most)
	default:
		*list = append(*list, element)
	}
}

// address that a name has in the files.
func (m *maker) address(host string) (netip.Addr, bool) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for range 8 { // aliases of aliases may go round
		for _, n := range m.Names {
			if n.Host == host {
				return n.IP, true
			}
		}
		i := slices.IndexFunc(m.Aliases, func(a Alias) bool { return a.Host == host })
		if i < 0 {
			break
		}
		host = m.Aliases[i].Of
	}
	return netip.Addr{}, false
}

// domain of the cluster whose API the names have: the one with api-int beside it, or *.apps.
func (s Site) domain() string {
	has := func(host string) bool {
		return slices.ContainsFunc(s.Names, func(n Name) bool { return n.Host == host }) || slices.ContainsFunc(s.Aliases, func(a Alias) bool { return a.Host == host })
	}
	for _, n := range s.Names {
		if domain, is := strings.CutPrefix(n.Host, "api."); is && (has("api-int."+domain) || has("*.apps."+domain)) {
			return domain
		}
	}
	return ""
}

// complete says what no file of these kinds can say.
func (m *maker) complete() {
	spec := &m.infra.Spec
	if m.ReadsHosts != nil && !m.HasHosts {
		m.Leave(*m.ReadsHosts, "DNS answered the names of the machine's hosts file, too: give it with --hosts, if workers need them")
	}
	if len(m.Unread) > 0 {
		m.miss("the files: they are not read in full at " + places(m.Unread) + ": do what is written above of that, and import them again")
	}
	if len(m.Subnets)+len(m.Reservations) == 0 && spec.InfraComponents.DHCP.Enabled == nil {
		m.miss("infraComponents.dhcp.enabled: no file configures DHCP; write false if another server stays on the VLAN, or true")
	}
	if spec.NetworkConfig.CIDR == "" {
		m.miss("networkConfig.cidr: no file says the netmask of the VLAN; write its network, e.g. 192.168.100.0/24, into an Infra, and give that with -f")
	}
	if spec.NetworkConfig.NetworkAttachmentDefinition == "" {
		m.miss("networkConfig.networkAttachmentDefinition: write the one that the NodePools name, e.g. vlan100")
	}
	if spec.HostedClusterRef == nil && spec.InfraComponents.DNS.ClusterName == "" {
		example, _, _ := strings.Cut(cmp.Or(m.domain, "c1."), ".")
		m.miss("hostedClusterRef: write the HostedCluster whose workers are on the VLAN, e.g. hostedClusterRef: {name: " + example + "}")
	}
	if networks := m.targetNetworks(); networks != "" {
		m.miss("extraEndpoints: their addresses have to be allowed; run the operator with --extra-endpoint-cidrs=" + networks)
	}
	if m.infra.Name == "" {
		m.miss("metadata.name: write a name, e.g. that of the HostedCluster")
	}
}

// places are the first few of them.
func places(all []Line) string {
	const most = 5
	var told []string
	for _, at := range all[:min(len(all), most)] {
		told = append(told, at.Where())
	}
	if len(all) > most {
		told = append(told, "…")
	}
	return strings.Join(told, ", ")
}

func (m *maker) miss(what string) { m.missing = append(m.missing, what) }

// Applied is the Infra as an apply configuration, without what nobody has set.
func (r Result) Applied() *ac.InfraApplyConfiguration {
	spec, _ := set(*desired.As[map[string]any](r.Infra.Spec)).(map[string]any)
	made := ac.Infra(r.Infra.Name, r.Infra.Namespace).WithLabels(r.Infra.Labels).WithAnnotations(r.Infra.Annotations).WithSpec(desired.As[ac.InfraSpecApplyConfiguration](spec))
	if r.Infra.Name == "" {
		made.Name = nil
	}
	if r.Infra.Namespace == "" {
		made.Namespace = nil
	}
	return made
}

// set is a value without empty texts and objects; nil if nothing is left.
func set(value any) any {
	switch v := value.(type) {
	case string:
		if v == "" {
			return nil
		}
	case map[string]any:
		for key, of := range v {
			if v[key] = set(of); v[key] == nil {
				delete(v, key)
			}
		}
		if len(v) == 0 {
			return nil
		}
	}
	return value
}
