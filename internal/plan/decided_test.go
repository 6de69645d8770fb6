package plan_test

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan"
)

// Any change of a child's spec, or of its network by the cluster, gives the same pods whether some run already or not: none is mistaken
// for a change by a newer manager, and delayed.
func TestWhatIsDecidedReachesTheRunningPod(t *testing.T) {
	shaping := map[string]bool{}
	for _, name := range []string{"dhcp", "dns", "proxy", "proxy-alone"} {
		c := childOf(t, name)
		c.dhcp.Settings.AllowImageOverride, c.dns.Settings.AllowImageOverride, c.proxy.Settings.AllowImageOverride = true, true, true
		before, released := template(t, c.plan())
		for field, part := range c.parts() {
			everyLeaf(reflect.ValueOf(part).Elem(), field, func(path string) {
				first := c.plan()
				if first.Frozen { // without a reference grant nothing is written
					return
				}
				want, _ := template(t, first)
				running := c
				running.dhcp.Running, running.dns.Running, running.proxy.Running = released, released, released
				running.dhcp.Now.Rolled, running.dns.Now.Rolled, running.proxy.Now.Rolled = true, true, true
				got, _ := template(t, running.plan())
				NewWithT(t).Expect(got).To(Equal(want), "%s: %s changed and did not reach the pod", name, path)
				shaping[path] = shaping[path] || !reflect.DeepEqual(want, before)
			})
		}
	}
	for _, path := range []string{
		"spec.Image", "spec.ManagerImage", "spec.ProxyImage", "spec.Placement.NodeSelector", "spec.Placement.Tolerations.Key", "spec.Placement.PriorityClassName",
		"spec.Placement.Resources.Limits", "spec.NetworkConfig.Attachment.NetworkAttachmentDefinition", "spec.NetworkConfig.Attachment.MACAddress",
		"spec.NetworkConfig.ServerIP", "spec.NetworkConfig.CapturedAddresses.IP", "labels", "network.Config", "infra.NetworkConfig.CIDR",
	} {
		NewWithT(t).Expect(shaping).To(HaveKeyWithValue(path, true), "the walk changes what shapes a pod")
	}
}

// parts are the inputs of a child that users and the cluster decide.
func (c aChild) parts() map[string]any {
	parts := map[string]any{"network": &c.dhcp.NAD.Spec}
	if c.dhcp.Infra != nil {
		parts["infra"] = &c.dhcp.Infra.Spec
	}
	switch {
	case c.dhcp.Server != nil:
		parts["spec"], parts["labels"] = &c.dhcp.Server.Spec, &c.dhcp.Server.Labels
	case c.dns.Server != nil:
		parts["spec"], parts["labels"] = &c.dns.Server.Spec, &c.dns.Server.Labels
	default:
		parts["spec"], parts["labels"] = &c.proxy.Server.Spec, &c.proxy.Server.Labels
	}
	return parts
}

// everyLeaf changes each value in turn, adding those that are missing, calls visit, and restores the value.
func everyLeaf(v reflect.Value, path string, visit func(path string)) {
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	defer v.Set(was)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				everyLeaf(v.Field(i), path+"."+field.Name, visit)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if !was.IsNil() {
			v.Elem().Set(was.Elem())
		}
		everyLeaf(v.Elem(), path, visit)
	case reflect.Slice:
		v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, 1), was))
		if v.Len() == 0 {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		}
		for i := range v.Len() {
			everyLeaf(v.Index(i), path, visit)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range was.MapKeys() {
			v.SetMapIndex(key, was.MapIndex(key))
		}
		key := reflect.ValueOf(names.LabelInfra).Convert(v.Type().Key())
		value := reflect.New(v.Type().Elem()).Elem()
		if value.Kind() == reflect.String {
			value.SetString("other")
		}
		v.SetMapIndex(key, value)
		visit(path)
	case reflect.String:
		v.SetString(another(was.String()))
		visit(path)
	case reflect.Bool:
		v.SetBool(!was.Bool())
		visit(path)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(was.Int() + 1)
		visit(path)
	default:
		panic(path + ": a value of a kind that this walk cannot change")
	}
}

func another(text string) string {
	if a, err := netip.ParseAddr(text); err == nil {
		return a.Next().String()
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		return netip.PrefixFrom(p.Addr(), p.Bits()+1).Masked().String()
	}
	return strings.Replace(strings.Replace(text, "br100", "br200", 1), `"topology":"localnet"`, `"topology":"localnet","mtu":1400`, 1) + " "
}

// Whenever a decision changes a derived network's configuration, AnnotationInputs changes too.
func TestWhatIsDecidedOfANetworkIsAmongItsInputs(t *testing.T) {
	g := NewWithT(t)
	in := load(t, "testdata/clients-behind-a-router/in.yaml").Inputs(settings())[0]
	before := derived(plan.Infra(in))
	changed := map[string]bool{}
	visit := func(path string) {
		for name, now := range derived(plan.Infra(in)) {
			if was := before[name]; was != nil && was.Spec.Config != now.Spec.Config {
				changed[path] = true
				g.Expect(now.Annotations[names.AnnotationInputs]).NotTo(Equal(was.Annotations[names.AnnotationInputs]), "%s: %s", path, name)
			}
		}
	}
	for part, value := range map[string]any{"infra": &in.Infra.Spec, "network": &in.NAD.Spec, "api": &in.HostedCluster.Status.ControlPlaneEndpoint} {
		everyLeaf(reflect.ValueOf(value).Elem(), part, visit)
	}
	for _, path := range []string{
		"network.Config", "api.Host", "infra.NetworkConfig.CIDR", "infra.NetworkConfig.Gateway", "infra.NetworkConfig.ClientCIDRs",
	} {
		g.Expect(changed).To(HaveKey(path), "the walk changes what shapes a network")
	}
}

func derived(p plan.InfraPlan) map[string]*nad.ApplyConfiguration {
	all := map[string]*nad.ApplyConfiguration{}
	for _, o := range p.Objects {
		if network, is := o.(*nad.ApplyConfiguration); is {
			all[*network.Name] = network
		}
	}
	return all
}
