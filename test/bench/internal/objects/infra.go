package objects

import (
	"context"
	"fmt"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const infra = `
---
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: CLUSTER, namespace: NAMESPACE}
spec:
  hostedClusterRef: {name: CLUSTER}
  networkConfig: {cidr: CIDR, networkAttachmentDefinition: CLUSTER-vlan}
`

// CreateInfra creates the nth Infra, with the hosted cluster that it reads. more is YAML for its spec.
func CreateInfra(ctx context.Context, api client.Client, n int, name, more string) error {
	hosted, err := os.ReadFile("internal/controller/testdata/hosted.yaml")
	if err != nil {
		return err
	}
	text := strings.NewReplacer("CLUSTER", name, "NAMESPACE", Namespace, "CIDR", fmt.Sprintf("10.%d.%d.0/24", n/250, n%250),
		"LITERAL", fmt.Sprintf("203.0.%d.%d", 113+n/250, 1+n%250)).Replace(string(hosted) + infra + more)
	if err := createAll(ctx, api, text); err != nil {
		return fmt.Errorf("hosted cluster %s: %w", name, err)
	}
	return nil
}

func createAll(ctx context.Context, api client.Client, text string) error {
	for dec := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := dec.Decode(o); err != nil {
			return nil // the end of the text
		}
		status := o.DeepCopy()
		if err := api.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) { // they share a namespace
			return err
		}
		if _, has := status.Object["status"]; has {
			status.SetResourceVersion(o.GetResourceVersion())
			if err := api.Status().Update(ctx, status); err != nil {
				return err
			}
		}
	}
}
