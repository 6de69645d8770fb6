package finding

import (
	"fmt"
)

// Annotate is the command that annotates a HostedCluster.
func Annotate(namespace, name, key, value string) string {
	return fmt.Sprintf("kubectl -n %s annotate --overwrite hostedcluster %s %s=%s", namespace, name, key, value)
}

// Granting tells whoever installed us how to let us work in a namespace: by a Kustomize component, or by a value of the chart.
func Granting(namespace, component, value string) string {
	return fmt.Sprintf("kubectl apply -n %s -k config/components/%s, or, where Helm installed it, add %s to the chart's %s", namespace, component, namespace, value)
}
