// Package standin puts a hosted control plane where HyperShift would put it, real where workers touch it:
// etcd, kube-apiserver, controllers, konnectivity, ignition and OAuth behind HyperShift's own Service names,
// ports, labels, Routes and NetworkPolicies, and the HostedCluster whose status points at them.
//
// What HyperShift's operators do with two dozen controllers is done here in one pass, Apply: the functions
// that say what should be are pure (manifests, certificates, status), Apply is the only writer. What must
// live beside the cluster runs in it as `standin serve …`: the ignition server and its TLS front, OAuth, the router,
// the machine approver, the provider that reports the machines' addresses, the hosted cluster's own objects.
//
// A HostedCluster that somebody else has made is taken up by Adopt, which reads all else from its spec.
//
// groundtruth_test.go holds all of it against HyperShift's files.
package standin
