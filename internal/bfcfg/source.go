package bfcfg

import "github.com/cldmnky/oooi/internal/dpf"

// Source is everything that a template is made from.
type Source struct {
	// Ignition is HyperShift's, of the bridge's NodePool, as the ignition server sends it: JSON, spec 3.x.
	Ignition []byte
	// MachineOS is the image that the DPU's operating system is rebased to.
	MachineOS string
	Flavor    *dpf.DPUFlavor
	// MTU is DPFOperatorConfig.spec.networking.highSpeedMTU; 0 means 1500.
	MTU int
	// ZeroTrust DPUs do not trust their host: there is no agent on it that they report to.
	ZeroTrust bool
	// Registry is the URL of DPF's bfb-registry, from which zero-trust DPUs download DPF's agent.
	Registry string
	// RegistryCA are CAs of Registry besides those of the operating system, in PEM; empty if there are none.
	RegistryCA string `json:",omitempty"`
	// PullCA is the CA of the registry of MachineOS, in PEM; empty if it needs none of its own.
	PullCA string `json:",omitempty"`

	hugepages, pause string // what hold found out
}

// Problem is why there can be no template, for a condition. Reason is stable, Field says where, Message what is wrong and what to do.
type Problem struct{ Reason, Field, Message string }

func (p *Problem) Error() string { return p.Field + ": " + p.Message }

// Reasons of Problems.
const (
	IgnitionInvalid       = "IgnitionInvalid"
	MachineConfigNotFound = "MachineConfigNotFound"
	MachineOSMissing      = "MachineOSMissing"
	RegistryInvalid       = "RegistryInvalid"
	FlavorInvalid         = "FlavorInvalid"
	FlavorRefused         = "FlavorRefused"
	PauseImageNotFound    = "PauseImageNotFound"
	TemplateTooLarge      = "TemplateTooLarge"
)
