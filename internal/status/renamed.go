package status

import "cmp"

// renamedReasons are reasons that managers before the vocabulary of docs/glossary.md wrote, and what they are called since
// (docs/reference/renamed.md). Only a condition that is kept or handed on is written with the reason that was read.
var renamedReasons = map[string]string{
	"Fit":                      "NADValid",
	"DNSIsOff":                 "DNSDisabled",
	"DPFMissing":               "DPFNotInstalled",
	"HyperShiftMissing":        "HyperShiftNotInstalled",
	"HyperShiftRefuses":        "RejectedByHyperShift",
	"ImageNotPulled":           "ImagePullFailed",
	"MTUNotSaid":               "MTUNotSpecified",
	"MetalLBMissing":           "MetalLBNotInstalled",
	"NADUnfit":                 "NADUnsupported",
	"NewerTemplateWaits":       "TemplateUpdatePending",
	"NoNodeForNewPod":          "NewPodUnschedulable",
	"NobodyServed":             "NoClientsServed",
	"NodeAddressAway":          "NodeAddressNotFound",
	"NotYetJudged":             "NotEvaluated",
	"OAuthRouteDisagrees":      "OAuthHostMismatch",
	"ProxyIsOff":               "ProxyDisabled",
	"RouterPublishedOtherwise": "RouterPublishingMismatch",
	"ServicesAreOff":           "ComponentsDisabled",
	"StorageClassMissing":      "StorageClassNotFound",
	"TypeKamaji":               "TypeUnsupported",
	"WaitsForTurn":             "WaitingForTurn",
	"WatchingInPart":           "PartiallyWatching",
	"WorkerNADNameUnfit":       "WorkerNADNameInvalid",
}

// current is what a reason that was read is called today.
func current(reason string) string { return cmp.Or(renamedReasons[reason], reason) }
