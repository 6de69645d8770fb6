// Package standin puts a hosted control plane where HyperShift would put it, real where workers touch it: etcd, kube-apiserver,
// controllers, konnectivity, ignition and OAuth behind HyperShift's own Service names, ports, labels, Routes and NetworkPolicies, and the
// HostedCluster whose status points at them.
//
// HyperShift's operators use two dozen controllers; this does the same in one pass, Apply. The functions that say what should be
// (manifests, certificates, status) are pure, and Apply is the only writer. What must keep running runs in the cluster as `standin serve
// …`: the ignition server and its TLS front, OAuth, the router, the machine approver, the provider that reports the machines' addresses,
// the hosted cluster's own objects.
//
// Adopt does the same for a HostedCluster that somebody else made, and reads everything else from its spec.
//
// groundtruth_test.go compares all of it with HyperShift's files.
package standin
