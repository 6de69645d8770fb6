package status

import "cmp"

// renamedReasons maps reasons that managers wrote before the vocabulary of docs/glossary.md to today's (docs/reference/renamed.md). It is
// needed only for conditions that are kept or passed on with the reason that was read.
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

// current is today's word for a reason that was read.
func current(reason string) string { return cmp.Or(renamedReasons[reason], reason) }
