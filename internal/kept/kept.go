// Package kept limits how much of an object the manager keeps in memory, because its author can make it as large as the API server accepts, 1.5
// MiB. Of a custom resource larger than any useful one the manager keeps an outline, of an object of a built-in kind the name. Both are marked:
// nothing is planned from them, and what was planned before stays.
package kept

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

const (
	// mostOfPart is the limit of an object's metadata, spec or status: an Infra with the most reservations, each with a name, and some hundred
	// names of endpoints, takes half.
	mostOfPart = 128 << 10
	// mostOfServer is the same limit for a DHCPServer, DNSServer or ProxyServer, which repeats some of its Infra's content, and again in
	// managedFields.
	mostOfServer = 256 << 10
	// mostOfNetwork is the same limit for a NetworkAttachmentDefinition: the documented configurations have some hundred octets.
	mostOfNetwork = 64 << 10
	// mostOfFlavor is the same limit for a DPUFlavor, whose files are kept twice: the ConfigMap that is made of it may have 1 MiB.
	mostOfFlavor = 1 << 20
	// MostOfKubernetes is the limit of a whole object of a built-in kind: ours, and the Services that HyperShift makes, take some thousand
	// octets. An editor of a namespace may write larger ones, as many as the quota allows.
	MostOfKubernetes = 32 << 10
	// mostOfOutline is the limit of each part in an outline: twice what the 256 excludeRanges of a DHCPServer take.
	mostOfOutline = 32 << 10
)

// Object is an object of the API.
type Object interface {
	metav1.Object
	runtime.Object
}

// Of returns an object, or what is kept of one that is too large. It always drops a custom resource's annotations that are not read here.
func Of(object Object) Object {
	if ofKubernetes(object) {
		return wholeOrNamed(object)
	}
	object.SetAnnotations(ours(object.GetAnnotations()))
	for part, value := range parts(object) {
		if octets := Octets(value.Addr().Interface()); octets > most(object) {
			return outline(object, part, octets)
		}
	}
	return object
}

// AsWritten is Of for an object in a request, without managedFields, which the API server adds. The object itself does not change.
func AsWritten(object Object) Object {
	written := object.DeepCopyObject().(Object)
	written.SetManagedFields(nil)
	return Of(written)
}

// Excess is the part of an object that is too large, its size and its limit.
type Excess struct {
	Part         string // metadata, spec or status; empty for a whole object
	Octets, Most int
}

// String returns text for the middle of a sentence.
func (e Excess) String() string {
	of := "it"
	if e.Part != "" {
		of = "its " + e.Part
	}
	return fmt.Sprintf("%s takes %d KiB of memory, and may take %d", of, e.Octets>>10, e.Most>>10)
}

// InPart says whether an object is kept only in part, and which part is too large.
func InPart(object Object) (Excess, bool) {
	part, octets, marked := strings.Cut(object.GetAnnotations()[names.AnnotationKeptInPart], " ")
	n, err := strconv.Atoi(octets)
	return Excess{Part: part, Octets: n, Most: most(object)}, marked && err == nil
}

func most(object Object) int {
	if _, is := component.Of(object); is {
		return mostOfServer
	}
	if _, is := object.(*nad.NetworkAttachmentDefinition); is {
		return mostOfNetwork
	}
	if _, is := object.(*dpf.DPUFlavor); is {
		return mostOfFlavor
	}
	if ofKubernetes(object) {
		return MostOfKubernetes
	}
	return mostOfPart
}

// ofKubernetes says whether an object is of a built-in kind, or a Route: custom resources have no protobuf encoding.
func ofKubernetes(object Object) bool {
	_, is := object.(interface{ Size() int })
	return is
}

// parts yields the parts of an object by their JSON names, in order.
func parts(object Object) func(yield func(string, reflect.Value) bool) {
	return func(yield func(string, reflect.Value) bool) {
		v := reflect.ValueOf(object).Elem()
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if name != "" && !yield(name, v.Field(i)) {
				return
			}
		}
	}
}
