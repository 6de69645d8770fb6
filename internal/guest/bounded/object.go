package bounded

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Identified has the metadata that we read of every object.
type Identified struct {
	Metadata struct {
		Namespace       string `json:"namespace"`
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

// Node is a Node without images and volumes, which make up most of it.
type Node struct {
	Metadata struct {
		Name              string       `json:"name"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Status struct {
		Addresses  []corev1.NodeAddress `json:"addresses"`
		Conditions []struct {
			Type   corev1.NodeConditionType `json:"type"`
			Status corev1.ConditionStatus   `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// Ready says whether the Node's condition Ready is True.
func (n *Node) Ready() bool {
	ready := false
	for _, c := range n.Status.Conditions {
		ready = ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	return ready
}

// Whole decodes an object as it is, for collections that keep all of T.
func Whole[T any](object []byte) (*T, error) {
	o := new(T)
	return o, json.Unmarshal(object, o)
}
