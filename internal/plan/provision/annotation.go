package provision

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/valid"
)

// annotated reads an annotation of the HostedCluster; zero if there is none. One that cannot be read is a finding.
func annotated[T any](d *derivation, key, form string, parse func(string) (T, error)) (value T) {
	text, set := d.HostedCluster.Annotations[key]
	if !set {
		return value
	}
	value, err := parse(strings.TrimSpace(text))
	if err != nil {
		d.refuse(key, text, form, err)
	}
	return value
}

func (d *derivation) refuse(key, text, form string, because error) {
	refuse := finding.Refuse(finding.Provisioned, "AnnotationInvalid").At(annotationField(key))
	if key == names.AnnotationInfra {
		refuse = refuse.Change(annotation(key, form)...)
	}
	reason := strings.ReplaceAll(because.Error(), "\n", "; ")
	d.findings = append(d.findings, refuse.Say("annotation %s is %.60q: %s; write it as: %s", key, text, reason, d.command(key, form)))
}

// miss says what is missing, which annotation sets it, and what to change if that is known.
func (d *derivation) miss(reason, key, form string, changes []finding.Change, what string, args ...any) {
	d.findings = append(d.findings, finding.Refuse(finding.Provisioned, reason).At(annotationField(key)).Change(changes...).
		Say(what+"; set it with: %s", append(args, d.command(key, form))...))
}

func annotationField(key string) string { return "metadata.annotations[" + key + "]" }

func annotation(key, value string) []finding.Change {
	return []finding.Change{{Values: finding.Values{"metadata.annotations": map[string]any{key: value}}}}
}

func (d *derivation) command(key, value string) string {
	return finding.Annotate(d.HostedCluster.Namespace, d.HostedCluster.Name, key, value)
}

func domainName(text string) (v1alpha1.DNSName, error) {
	if len(validation.IsDNS1123Subdomain(text)) > 0 {
		return "", errors.New("it is not a DNS name in lower case, such as example.com")
	}
	return v1alpha1.DNSName(text), nil
}

// inside parses an address of a network; any address if the network is not known.
func inside(cidr netip.Prefix) func(string) (netip.Addr, error) {
	return func(text string) (netip.Addr, error) {
		a, err := address(text)
		if err == nil && cidr.IsValid() && !cidr.Contains(a) {
			return netip.Addr{}, fmt.Errorf("%s lies outside %s", a, cidr)
		}
		return a, err
	}
}

func network(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, errors.New("it is not a network such as 192.168.100.0/24")
	case !valid.VLAN(p.Masked()):
		return netip.Prefix{}, fmt.Errorf("%s cannot be a VLAN's network; write one such as 192.168.100.0/24", p.Masked())
	}
	return p.Masked(), nil
}

func address(text string) (netip.Addr, error) {
	a, ok := valid.Address(text)
	if !ok {
		return netip.Addr{}, fmt.Errorf("%.40q is not an IP address", text)
	}
	return a, nil
}

func resolverList(text string) ([]netip.Addr, error) {
	var all []netip.Addr
	for one := range strings.SplitSeq(text, ",") {
		a, err := address(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		if !valid.Server(a) {
			return nil, fmt.Errorf("%s cannot be a server's address", a)
		}
		all = append(all, a)
	}
	if len(all) > valid.MostResolvers {
		return nil, fmt.Errorf("it has %d addresses, and at most %d are possible", len(all), valid.MostResolvers)
	}
	return all, nil
}
