package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/internal/diffcli"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// bindSettings adds the flags that planning depends on; the manager and render share them.
func bindSettings(cmd *cobra.Command, s *input.Settings) {
	bindImages(cmd, s)
	flags := cmd.Flags()
	flags.StringSliceVar(&s.ImagePullSecrets, "image-pull-secrets", nil, "names of pull Secrets for the daemons' images, in the namespace of each daemon (default none)")
	flags.BoolVar(&s.AllowImageOverride, "allow-image-override", false, "accept the image fields of Infras and their children")
	flags.StringSliceVar(&s.NADSourceNamespaces, "nad-source-namespaces", []string{"default", "openshift-multus", "openshift-sriov-network-operator", "openshift-cnv"},
		"namespaces whose NetworkAttachmentDefinitions Multus allows every pod to use")
	flags.Var((*prefixes)(&s.ExtraEndpointCIDRs), "extra-endpoint-cidrs", "networks whose addresses may be targets of extra endpoints and ProxyServers (default none)")
	flags.Var((*domain)(&s.ClusterDomain), "cluster-domain", "domain of the management cluster, which DNS does not answer on VLANs (default: the manager takes it from resolv.conf)")
	flags.Var((*prefixes)(&s.PodCIDRs), "pod-cidrs", "the management cluster's pod networks (default: the manager reads them from the cluster)")
	flags.Var((*prefixes)(&s.ServiceCIDRs), "service-cidrs", "the management cluster's service networks (default: the manager reads them from the cluster)")
	flags.StringSliceVar(&s.MetricsNamespaces, "metrics-namespaces", nil, "namespaces whose pods may scrape the daemons' metrics (default none)")
}

// bindImages adds the flags of the images alone, which `oooi images` has too.
func bindImages(cmd *cobra.Command, s *input.Settings) {
	flags := cmd.Flags()
	flags.StringVar(&s.Image, "image", os.Getenv("RELATED_IMAGE_OOOI"), "image of the daemons; default $RELATED_IMAGE_OOOI and, without a cluster, the released one")
	flags.StringVar(&s.EnvoyImage, "envoy-image", os.Getenv("RELATED_IMAGE_ENVOY"), "image of Envoy; default $RELATED_IMAGE_ENVOY and, without a cluster, the released one")
}

// requireImages: whoever installs the manager chooses its images. If it guessed, nodes might pull them from anywhere.
func requireImages(s input.Settings) error {
	if s.Image == "" || s.EnvoyImage == "" {
		return errors.New("the daemons' images are not known: set --image and --envoy-image (or RELATED_IMAGE_OOOI and RELATED_IMAGE_ENVOY)")
	}
	return nil
}

// The released images, as in the operator's Deployment (config/manager/manager.yaml).
const (
	releasedImage      = "oooi:v0.1.0"
	releasedEnvoyImage = "docker.io/envoyproxy/envoy:distroless-v1.40.0"
)

// withReleasedImages is for render and images, which apply nothing. Preflight plans no pods.
func withReleasedImages(s input.Settings) input.Settings {
	s.Image, s.EnvoyImage = cmp.Or(s.Image, releasedImage), cmp.Or(s.EnvoyImage, releasedEnvoyImage)
	return s
}

// domain is a flag with one DNS name.
type domain string

func (d *domain) Set(text string) error {
	if text != "" && len(validation.IsDNS1123Subdomain(text)) > 0 {
		return errors.New("not a domain in lower case; write one like cluster.local")
	}
	*d = domain(text)
	return nil
}

func (d *domain) String() string { return string(*d) }

func (d *domain) Type() string { return "domain" }

// prefixes is a flag with networks, separated by commas.
type prefixes []netip.Prefix

func (p *prefixes) Set(text string) error {
	*p = nil
	for one := range strings.SplitSeq(text, ",") {
		network, err := netip.ParsePrefix(strings.TrimSpace(one))
		if err != nil {
			return fmt.Errorf("%q is not a network; write one like 10.0.0.0/8", one)
		}
		if network != network.Masked() {
			return fmt.Errorf("%s is an address in a network; write the network, %s, or the address alone, %s", network, network.Masked(), netip.PrefixFrom(network.Addr(), network.Addr().BitLen()))
		}
		*p = append(*p, network)
	}
	return nil
}

func (p *prefixes) String() string {
	var all []string
	for _, network := range *p {
		all = append(all, network.String())
	}
	return strings.Join(all, ",")
}

func (p *prefixes) Type() string { return "cidrs" }

// settingsOf reads the arguments and variables of the operator's container as the operator does. A newer one may have flags that this one lacks.
func settingsOf(args []string, env func(string) string) (s diffcli.Settings, err error) {
	var flags managerFlags
	cmd := &cobra.Command{FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true}}
	flags.bind(cmd)
	bindSettings(cmd, &s.Input)
	s.Input.Image, s.Input.EnvoyImage = env("RELATED_IMAGE_OOOI"), env("RELATED_IMAGE_ENVOY")
	if err := cmd.ParseFlags(args); err != nil {
		return s, fmt.Errorf("reading the operator's arguments: %w", err)
	}
	if flags.dpuBridge {
		flags.bridges.Images.Namespace = flags.namespace
		s.Bridges = &flags.bridges
	}
	return s, nil
}
