// Package kept says how much of an object the manager keeps in memory. Whoever may write such objects makes them as large as the API
// server takes, 1.5 MiB. Of a custom resource that is larger than any that is of use the outline is kept, of an object of a kind of
// Kubernetes' own the name, with a mark: it is not planned by, and what it became before stays as it is.
package kept

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

const (
	// mostOfPart is what the metadata, the spec or the status of an object may take: an Infra with as many reservations as it may have,
	// each with a name, and some hundred names of endpoints, takes half.
	mostOfPart = 128 << 10
	// mostOfServer is what they may of a DHCPServer, DNSServer or ProxyServer: what an Infra becomes says some things twice, and once
	// more in managedFields.
	mostOfServer = 256 << 10
	// mostOfNetwork is what they may of a NetworkAttachmentDefinition: the documented configurations have some hundred octets.
	mostOfNetwork = 64 << 10
	// MostOfKubernetes is what an object of a kind of Kubernetes' own may take as a whole: ours, and the Services that HyperShift makes,
	// take some thousand. Any editor of a namespace may write larger ones, as many as his quota allows.
	MostOfKubernetes = 32 << 10
	// mostOfOutline is what is kept of a part when a part is too large: as much as the 256 ranges that a DHCPServer may leave out take,
	// twice.
	mostOfOutline = 32 << 10
)

// Object of the API.
type Object interface {
	metav1.Object
	runtime.Object
}

// Of is an object, or as much as is kept of one that is too large. What nobody here reads of a custom resource is dropped either way.
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

// AsWritten is what Of keeps of an object that somebody writes, who leaves managedFields to the API server. The object stays as it is.
func AsWritten(object Object) Object {
	written := object.DeepCopyObject().(Object)
	written.SetManagedFields(nil)
	return Of(written)
}

// Excess is the part of an object that is too large, and what it takes.
type Excess struct {
	Part         string // metadata, spec or status; empty where the whole is judged
	Octets, Most int
}

// String says it in a sentence's middle.
func (e Excess) String() string {
	of := "it"
	if e.Part != "" {
		of = "its " + e.Part
	}
	return fmt.Sprintf("%s takes %d KiB of memory, and may take %d", of, e.Octets>>10, e.Most>>10)
}

// InPart says whether an object is an outline or a name, and of which part there was too much.
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
	if ofKubernetes(object) {
		return MostOfKubernetes
	}
	return mostOfPart
}

// ofKubernetes says whether an object's kind is Kubernetes' own, or a Route: custom resources have no form in protobuf.
func ofKubernetes(object Object) bool {
	_, is := object.(interface{ Size() int })
	return is
}

// parts of an object by their names in JSON, in their order.
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
