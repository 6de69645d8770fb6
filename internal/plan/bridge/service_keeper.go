package bridge

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/dpfservices"
	"github.com/cldmnky/oooi/internal/finding"
)

// keeper plans the DPUServiceTemplates that a bridge keeps for its DPUDeployment.
type keeper struct {
	Input
	*Plan
	missing bool // the DPUDeployment waits for a DPUServiceTemplate
}

// because begins a finding about what is not made or changed. While nothing is missing, everything works as it is.
func (k keeper) because(reason string) finding.Builder {
	if k.missing {
		return finding.Wait(serviced, reason)
	}
	return finding.Warn(serviced, reason)
}

func (k keeper) keep() {
	runs := k.runsDPF()
	services := dpfservices.Of(runs)
	switch {
	case runs == "":
		k.Find(k.because("DPFVersionUnknown").Say("DPF does not report its version (status.version of the DPFOperatorConfig), and DPUServiceTemplates depend on it: see DPF's operator; until then none is made or changed"))
	case len(services) == 0:
		k.Find(k.because("DPFVersionUnsupported").At("spec.manageDPUServiceTemplates").Say("the operator has no DPUServiceTemplates for DPF %s, but for %s: use such a version, or make them yourself and remove manageDPUServiceTemplates; meanwhile none is made or changed", runs, strings.Join(dpfservices.Known(), ", ")))
	}
	for _, s := range services {
		is := k.serviceTemplate(s.Name)
		switch {
		case is != nil && !k.Owns(is):
			k.Find(finding.Warn(serviced, nameTaken).Say("DPUServiceTemplate %s/%s is not this bridge's, and is left as it is; the bridge makes its own if you delete it", is.Namespace, is.Name))
		case s.Name != dpfservices.OVN || k.runsOnHosts(s, is):
			k.Plan.Services.Apply = append(k.Plan.Services.Apply, of(k.Bridge, dpf.ServiceGroupVersion, "DPUServiceTemplate", DeploymentKey(k.Bridge).Namespace, s.Name, s.Spec))
		}
	}
}

// runsOnHosts gives OVN the image that the hosts run, or says why it cannot be made, or must not be changed yet. Only a change waits for the
// hosts: their pods need the DPUs, which DPF does not install without the template (dpf-hcp-provisioner-operator, issue 189).
func (k keeper) runsOnHosts(s dpfservices.Service, is *dpf.DPUServiceTemplate) bool {
	host, image := k.Input.Services.Host, ""
	if host != nil {
		image = ovnImage(host)
	}
	switch {
	case !s.WithImage(image):
		k.Find(k.because("OVNImageUnknown").Say("DaemonSet %s has no container ovnkube-controller with an image, from which DPUServiceTemplate ovn gets its own: OpenShift's network operator makes it when Nodes with DPUs are labelled network.operator.openshift.io/dpu-host", HostOVN))
	case !sinceRelease(host.Annotations[AnnotationHostRelease]):
		k.Find(k.because("HostReleaseUnsupported").Say("the hosts run OVN-Kubernetes of OpenShift %q, and DPUServiceTemplate ovn is for %s and later: upgrade the management cluster, or make ovn yourself", host.Annotations[AnnotationHostRelease], dpfservices.OVNSince))
	case !k.multiArch() && !k.foundFor(s, is):
	case is != nil && !rolledOutTo(host):
		k.Find(finding.Warn(serviced, "HostsRollingOut").Say("DaemonSet %s is being rolled out; a new image reaches DPUServiceTemplate ovn once all hosts run it", HostOVN))
	default:
		return true
	}
	return false
}

// foundFor gives OVN the image that was found for DPUs, or says why there is none. While it is looked up, a template that exists lacks nothing.
func (k keeper) foundFor(s dpfservices.Service, is *dpf.DPUServiceTemplate) bool {
	image, unknown := k.ovnFound()
	if s.WithImage(image) {
		return true
	}
	if unknown == "" && is != nil {
		return false
	}
	k.Find(k.because("HostReleaseNotMultiArch").Say("the management cluster's release is not multi-arch (ClusterVersion status.desired.architecture), so the hosts' image of OVN-Kubernetes does not run on DPUs, and DPUServiceTemplate ovn gets the one of the aarch64 release: %s", k.notFound(unknown)))
	return false
}

// notFound says why OVN's image for DPUs is not known, and what to do, which is nothing while registries are asked for the first time.
func (k keeper) notFound(unknown string) string {
	switch {
	case unknown == "":
		return "it is being looked up"
	case k.Input.Services.Answer.Reason != "": // by registries
		unknown += "; mirror that release and see the bridge's pull secret, or"
	default:
		unknown += ";"
	}
	return unknown + " move to the multi-arch release (oc adm upgrade --to-multi-arch), or make ovn yourself"
}

func ovnImage(host *appsv1.DaemonSet) string {
	for _, c := range host.Spec.Template.Spec.Containers {
		if c.Name == "ovnkube-controller" {
			return c.Image
		}
	}
	return ""
}

// rolledOutTo says whether all pods of a DaemonSet have its template and are available.
func rolledOutTo(d *appsv1.DaemonSet) bool {
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedNumberScheduled == s.DesiredNumberScheduled && s.NumberAvailable == s.DesiredNumberScheduled
}
