package controller_test

import (
	"maps"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
)

const (
	copyOfRelease = "layers-4.20.6" // the ImageStream of the copy of lookedUp's image
	unusedRelease = "example.com/ocp-release:4.20.7-multi"
)

// besideTheCopy are ImageStreams of a stranger that no bridge has asked for, though a bridge of his could name the first.
var besideTheCopy = []string{"layers-4.20.7", "layers-4.20.5", copyOfRelease + "-multi", copyOfRelease + "0", "layers", "other-4.20.6"}

// copiesImages has the victim's image copied into a namespace of OpenShift's registry. A stranger has been there before: he made ImageStreams beside
// the copy, and the one that is to have it, with another image.
func (v *victim) copiesImages() {
	v.t.Helper()
	v.copies, v.ocp = v.ns+"-copies", v.openShiftsRegistry()
	v.offers("v1", "ImageStream.image.openshift.io")
	config := &configv1.Image{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	v.configures(config)
	v.reports(config, func() {
		config.Status.InternalRegistryHostname, config.Status.ExternalRegistryHostnames = v.ocp.host, []string{v.ocp.host}
	})
	v.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v.copies}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: v.copies, Name: "oooi-image-cache"}})
	v.appliesRole("image-cache", v.copies)
	for _, name := range append([]string{copyOfRelease}, besideTheCopy...) {
		v.creates(v.streamAt(v.copies, name, nil))
	}
	theirs, err := mutate.Config(empty.Image, v1.Config{Labels: map[string]string{"of": "a stranger"}})
	v.Expect(err).NotTo(HaveOccurred())
	v.Expect(remote.Write(v.copyTag(), theirs, v.asPusher()...)).To(Succeed())
}

func (v victim) streamAt(namespace, name string, labels map[string]string) *unstructured.Unstructured {
	s := v.imageStream(name)
	s.SetNamespace(namespace)
	s.SetLabels(maps.Clone(labels))
	return s
}

// copyImage is what the victim's DPUs are installed with.
func (v victim) copyImage() string {
	return v.ocp.host + "/" + v.copies + "/" + copyOfRelease + ":4.20.6"
}

func (v victim) copyTag() name.Reference {
	v.t.Helper()
	ref, err := name.ParseReference(v.copyImage())
	v.Expect(err).NotTo(HaveOccurred())
	return ref
}

func (v victim) asPusher() []remote.Option {
	return []remote.Option{remote.WithTransport(trusting()), remote.WithAuth(&authn.Basic{Username: "any", Password: "any"})}
}

// installsTheAdminsImage: the victim's DPUs get what the admin's repository has, whatever was in its place.
func (v victim) installsTheAdminsImage() {
	v.t.Helper()
	v.Expect(v.saysOf(theirBridge, image, metav1.ConditionTrue, "Found")).To(Equal(v.copyImage()))
	has, err := remote.Head(v.copyTag(), v.asPusher()...)
	v.Expect(err).NotTo(HaveOccurred())
	v.Expect(has.Digest).To(Equal(v.pushed))
}

func streamList() *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "image.openshift.io/v1", "kind": "ImageStreamList"}}
}

// streams are all ImageStreams in a namespace.
func (v victim) streams(namespace string) []client.Object {
	v.t.Helper()
	all := streamList()
	v.Expect(v.api.List(v.ctx, all, client.InNamespace(namespace))).To(Succeed())
	return items(all)
}

// intoAnothersCopies are ways to what the victim's image is copied to.
func intoAnothersCopies() []way {
	return []way{
		{name: "ImageStreams of the victim's name and labels", quietly: true, does: func(s *stranger) {
			for _, name := range []string{copyOfRelease, "layers-4.20.5"} {
				s.writes(s.streamAt(s.at, name, s.victims()))
			}
		}, keeps: func(s *stranger) {
			s.Expect(s.victim.streams(s.at)).To(HaveLen(2), s.name)
			s.Expect(s.victim.streams(s.at)).To(HaveEach(And(HaveField("GetGeneration()", BeEquivalentTo(1)), HaveField("GetDeletionTimestamp()", BeNil()))), s.name)
		}},
		{name: "the victim's copy, as an image of his own", says: map[string]string{image: "MachineOSImage"}, does: func(s *stranger) {
			s.bridges(func(b *dpuv1.DPUHCPBridge) { b.Spec.MachineOSImage = dpuv1.ReleaseImage(s.copyImage()) })
		}},
		{name: "a copy that no bridge uses, as an image of his own", says: map[string]string{image: "MachineOSImage"}, does: func(s *stranger) {
			s.bridges(func(b *dpuv1.DPUHCPBridge) {
				b.Spec.MachineOSImage = dpuv1.ReleaseImage(strings.ReplaceAll(s.copyImage(), "4.20.6", "4.20.5"))
			})
		}},
		{name: "a copy that no bridge uses, by its release, with a login of his own", says: map[string]string{image: "RegistryUnauthorized"}, does: func(s *stranger) {
			s.bridges(func(b *dpuv1.DPUHCPBridge) { b.Spec.OCPReleaseImage = unusedRelease })
		}},
	}
}
