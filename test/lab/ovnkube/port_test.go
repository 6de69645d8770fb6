package ovnkube

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const network = `{"cniVersion":"1.0.0","type":"ovn-k8s-cni-overlay","name":"cluster_udn_tenant-a","netAttachDefName":"nets/tenant-a","topology":"localnet","physicalNetworkName":"physnet","vlanID":110,"mtu":1500}`

const wish = `[{"name":"tenant-a","namespace":"nets","interface":"net1","mac":"02:00:00:00:00:01","ips":["192.168.110.3/24","203.0.113.10/32"]}]`

func portOf(t *testing.T, config, networks string) (Port, error) {
	t.Helper()
	var conf Conf
	if err := json.Unmarshal([]byte(config), &conf); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1-proxy", Annotations: map[string]string{"k8s.v1.cni.cncf.io/networks": networks}}}
	return PortOf(conf, config, pod)
}

func TestAPortHasWhatThePodAsksFor(t *testing.T) {
	for name, c := range map[string]struct{ config, networks, wantSwitch, wantLocalnet, wantName, wantSecurity string }{
		"MAC and addresses, a /32 too": {
			network, wish, "cluster_udn_tenant.a_ovn_localnet_switch", "cluster_udn_tenant.a_ovn_localnet_port", "nets.tenant.a_clusters_c1-proxy", "02:00:00:00:00:01 192.168.110.3 203.0.113.10",
		},
		"a MAC made of the address": {
			network, strings.Replace(wish, `"mac":"02:00:00:00:00:01",`, "", 1),
			"cluster_udn_tenant.a_ovn_localnet_switch", "cluster_udn_tenant.a_ovn_localnet_port", "nets.tenant.a_clusters_c1-proxy", "0a:58:c0:a8:6e:03 192.168.110.3 203.0.113.10",
		},
		"a virtual machine: its MAC only": {
			network, `[{"name":"tenant-a","namespace":"nets","mac":"02:00:00:00:00:02"}]`,
			"cluster_udn_tenant.a_ovn_localnet_switch", "cluster_udn_tenant.a_ovn_localnet_port", "nets.tenant.a_clusters_c1-proxy", "02:00:00:00:00:02",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := portOf(t, c.config, c.networks)
			if err != nil {
				t.Fatal(err)
			}
			if p.Switch() != c.wantSwitch || p.Localnet() != c.wantLocalnet || p.Name != c.wantName || p.Security() != c.wantSecurity {
				t.Errorf("the port is %s on %s by %s: %q", p.Name, p.Switch(), p.Localnet(), p.Security())
			}
		})
	}
}

func TestWhatIsNotSaid(t *testing.T) {
	p, err := portOf(t, strings.Replace(network, `,"physicalNetworkName":"physnet","vlanID":110,"mtu":1500`, "", 1), wish)
	if err != nil {
		t.Fatal(err)
	}
	if p.PhysicalNetwork != "cluster_udn_tenant-a" || p.MTU != 1400 || p.VLAN != 0 {
		t.Errorf("physical network %q, MTU %d, VLAN %d; want the network's name, the pod network's MTU, no VLAN", p.PhysicalNetwork, p.MTU, p.VLAN)
	}
}

func TestWhatOVNKubernetesRefuses(t *testing.T) {
	for name, c := range map[string]struct{ config, networks, want string }{
		"addresses on a network with subnets":     {strings.Replace(network, `"mtu"`, `"subnets":"192.168.110.0/24","mtu"`, 1), wish, "static IP request with IPAM"},
		"an IPAM plugin":                          {strings.Replace(network, `"mtu"`, `"ipam":{"type":"static"},"mtu"`, 1), wish, "IPAM key is not supported"},
		"another network's netAttachDefName":      {strings.Replace(network, "nets/tenant-a", "nets/tenant-b", 1), wish, "no network nets/tenant-b"},
		"no netAttachDefName":                     {strings.Replace(network, `"netAttachDefName":"nets/tenant-a",`, "", 1), wish, "missing NADName"},
		"a network that the pod does not ask for": {network, `[{"name":"tenant-a"}]`, "no network nets/tenant-a"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := portOf(t, c.config, c.networks); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the answer is %v, want one that says %q", err, c.want)
			}
		})
	}
	t.Run("a chain of plugins", func(t *testing.T) {
		// The plugin gets only its own part of the list.
		var conf Conf
		if err := json.Unmarshal([]byte(network), &conf); err != nil {
			t.Fatal(err)
		}
		if err := conf.refused(`{"plugins":[` + network + `,{"type":"tuning"}]}`); err == nil || !strings.Contains(err.Error(), "chaining") {
			t.Errorf("the answer is %v", err)
		}
	})
}
