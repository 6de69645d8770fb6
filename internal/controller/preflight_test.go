package controller_test

import (
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
)

// A finding on a NodePool is reported until it is corrected, and blocks nothing.
func TestANodePoolIsJudgedAndFollowed(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	w.puts(w.nodePool("c1", w.ns+"/workers"))
	w.creates(w.smallest("c1"))
	w.Expect(w.says("c1", v1alpha1.ConditionNetworkReady, metav1.ConditionFalse, "NodePoolNotOnVLAN")).To(ContainSubstring("NodePool " + w.ns + "/c1 is not on the VLAN of NetworkAttachmentDefinition " + w.ns + "/c1-vlan"))
	sees(w, named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy"), there)

	source := sees(w, named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-vlan"), there)
	workers := named(&nad.NetworkAttachmentDefinition{Spec: source.Spec}, w.ns, "workers")
	w.creates(workers)
	w.says("c1", v1alpha1.ConditionNetworkReady, metav1.ConditionTrue, "NoTimeSource")

	pool := named(&hyperv1.NodePool{}, w.ns, "c1")
	w.changes(pool, func() { pool.Spec.Platform.Kubevirt.AttachDefaultNetwork = ptr.To(true) })
	w.says("c1", v1alpha1.ConditionNetworkReady, metav1.ConditionFalse, "DefaultNetworkAttached")
	w.says("c1", v1alpha1.ConditionReady, metav1.ConditionFalse, "DefaultNetworkAttached")
	w.changes(pool, func() { pool.Spec.Platform.Kubevirt.AttachDefaultNetwork = ptr.To(false) })
	w.settled("c1")
}
