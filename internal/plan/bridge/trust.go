package bridge

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
)

const (
	// configNamespace has the ConfigMaps that OpenShift's own configuration names (openshift/api config/v1, types_image.go and types_proxy.go).
	configNamespace = "openshift-config"
	// bundleKey is the key of the cluster-wide bundle (openshift/api config/v1, types_proxy.go, trustedCA).
	bundleKey = "ca-bundle.crt"
)

// CAKeys name the ConfigMaps with the CAs that the cluster's administrator trusts: those of single registries, and those of all servers. Empty
// where OpenShift's configuration names none.
func (in Input) CAKeys() (ofRegistries, ofAll types.NamespacedName) {
	if in.ImageConfig != nil {
		ofRegistries = inConfigNamespace(in.ImageConfig.Spec.AdditionalTrustedCA.Name)
	}
	if in.Proxy != nil {
		ofAll = inConfigNamespace(in.Proxy.Spec.TrustedCA.Name)
	}
	return ofRegistries, ofAll
}

func inConfigNamespace(name string) types.NamespacedName {
	if name == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: configNamespace, Name: name}
}

// trustBundle has the CAs that the administrator trusts everywhere, for a hosted cluster that HyperShift gives them to, and its DPUs; nil where
// there are none. Its name changes with them, because HyperShift makes new ignition for another name only (openshift/hypershift 3ee96155,
// nodepool/config.go, Hash).
func (in Input) trustBundle() *accore.ConfigMapApplyConfiguration {
	text := textOf(in.TrustedCA, bundleKey)
	if _, key := in.CAKeys(); key.Name == "" || text == "" {
		return nil
	}
	return accore.ConfigMap(names.BridgeCopy(in.Bridge.Name, trustBundle, []byte(text)), in.Bridge.Namespace).
		WithLabels(labels(in.Bridge)).WithData(map[string]string{bundleKey: text})
}

const trustBundle = "trust-bundle"

// trusted refers to trustBundle. What somebody else has the hosted cluster trust stays.
func (in Input) trusted() *corev1.LocalObjectReference {
	bundle := in.trustBundle()
	if bundle == nil || in.trustsOthers() {
		return nil
	}
	return &corev1.LocalObjectReference{Name: *bundle.Name}
}

// trustsOthers says whether somebody else has chosen what the hosted cluster trusts.
func (in Input) trustsOthers() bool {
	hc := in.cluster()
	return hc != nil && hc.Spec.AdditionalTrustBundle != nil && !strings.HasPrefix(hc.Spec.AdditionalTrustBundle.Name, in.Bridge.Name+"-"+trustBundle+"-")
}

// untrusted says what is wrong with the CAs of trustBundle. It freezes the bridge, because a plan without the present ConfigMap removes that, and
// the hosted cluster still needs it.
func (in Input) untrusted() []finding.Finding {
	_, problem := in.trustedCA()
	if problem == nil || in.trustsOthers() {
		return nil
	}
	problem.Condition = dpuv1.ConditionReady
	return one(*problem)
}

// trustedCA are the CAs of all servers, in PEM; empty if the administrator names none.
func (in Input) trustedCA() (string, *finding.Finding) {
	_, key := in.CAKeys()
	text, problem := authorities(in.TrustedCA, key, bundleKey, "spec.trustedCA of proxy.config.openshift.io/cluster")
	if problem == nil && text == "" && key.Name != "" {
		f := finding.Wait(dpuv1.ConditionBlueFieldContainerImageAvailable, "TrustedCAInvalid").At(bundleKey).Say("ConfigMap %s, which spec.trustedCA of proxy.config.openshift.io/cluster names, has no key %s: write the CAs there, in PEM", key, bundleKey)
		problem = &f
	}
	return text, problem
}

// reach adds to a look-up how its registries are reached: the cluster's proxy, and their CAs, or returns the finding that says what is wrong
// with these. Of the proxy it is the status, to which OpenShift has added its own names and networks as exceptions (openshift/api config/v1,
// types_proxy.go).
func (in Input) reach(want *Lookup) (problem *finding.Finding) {
	if in.Proxy != nil {
		want.Proxy = Proxy{HTTPS: in.Proxy.Status.HTTPSProxy, Except: in.Proxy.Status.NoProxy}
	}
	if want.TrustedCA, problem = in.trustedCA(); problem != nil {
		return problem
	}
	for _, places := range [][]Place{want.Images, want.Releases} {
		for i := range places {
			if places[i].CA, problem = in.authority(registryOf(places[i].Repository)); problem != nil {
				return problem
			}
		}
	}
	return nil
}

// authority is the CA of one registry. A ConfigMap's keys may have no colon: a port follows two dots (openshift/api config/v1, types_image.go;
// openshift-docs, images/image-configuration).
func (in Input) authority(registry string) (string, *finding.Finding) {
	key, _ := in.CAKeys()
	return authorities(in.RegistryCAs, key, strings.Replace(registry, ":", "..", 1), "spec.additionalTrustedCA of image.config.openshift.io/cluster")
}

// pullCA is the CA of the registry that DPUs pull an image from. That of the cluster's own registry, at its route, is the ingress's.
func (in Input) pullCA(image string) (string, *finding.Finding) {
	registry := registryOf(image)
	authority, problem := in.authority(registry)
	if authority == "" && in.ImageConfig != nil && slices.Contains(in.ImageConfig.Status.ExternalRegistryHostnames, registry) {
		authority = textOf(in.IngressCA, bundleKey)
	}
	return authority, problem
}

// authorities is what a ConfigMap has under a key; empty if none is named, or it has no such key.
func authorities(is *corev1.ConfigMap, named types.NamespacedName, key, field string) (string, *finding.Finding) {
	if named.Name == "" {
		return "", nil
	}
	if is == nil {
		f := finding.Wait(dpuv1.ConditionBlueFieldContainerImageAvailable, "TrustedCANotFound").At(field).Say("%s names ConfigMap %s, which does not exist: create it, or have the name removed", field, named)
		return "", &f
	}
	text, has := is.Data[key]
	if !has {
		return "", nil
	}
	if problem := certificatesProblem(text); problem != "" {
		f := finding.Wait(dpuv1.ConditionBlueFieldContainerImageAvailable, "TrustedCAInvalid").At(key).Say("key %s of ConfigMap %s, which %s names, %s: correct it", key, named, field, problem)
		return "", &f
	}
	return text, nil
}

func textOf(m *corev1.ConfigMap, key string) string {
	if m == nil {
		return ""
	}
	return m.Data[key]
}

// certificatesProblem says what is wrong with certificates in PEM; empty if nothing is. Every one of them must parse, because the API and the
// nodes of OpenShift take no bundle of which one does not (openshift/library-go, pkg/crypto, CertsFromPEM).
func certificatesProblem(text string) string {
	certificates := 0
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Sprintf("has a block %q, and may have certificates only", block.Type)
		}
		certificates++
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Sprintf("has a certificate that cannot be read, number %d", certificates)
		}
	}
	if certificates == 0 {
		return "has no certificate in PEM"
	}
	return ""
}
