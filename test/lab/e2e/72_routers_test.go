//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// ingressController is the default one as HyperShift creates it if operatorConfiguration.ingressOperator says HostNetwork.
const ingressController = `apiVersion: v1
kind: Namespace
metadata: {name: openshift-ingress-operator}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ingresscontrollers.operator.openshift.io}
spec:
  group: operator.openshift.io
  scope: Namespaced
  names: {kind: IngressController, plural: ingresscontrollers}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
---
apiVersion: operator.openshift.io/v1
kind: IngressController
metadata: {name: default, namespace: openshift-ingress-operator}
spec: {endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 8080, httpsPort: 8443}}}
`

// routerPod is the pod of the ingress operator's Deployment on worker on-its-worker. No kubelet runs it: a host of the VLAN at the worker's
// address serves instead.
const routerPod = `apiVersion: v1
kind: Namespace
metadata: {name: openshift-ingress}
---
apiVersion: v1
kind: Pod
metadata: {name: router-default-0, namespace: openshift-ingress, labels: {ingresscontroller.operator.openshift.io/deployment-ingresscontroller: default}}
spec:
  nodeName: on-its-worker
  hostNetwork: true
  automountServiceAccountToken: false
  containers:
  - {name: router, image: router, ports: [{name: http, containerPort: 8080, hostPort: 8080}, {name: https, containerPort: 8443, hostPort: 8443}]}
`

// Routers listen on their workers' own addresses, at ports of their own. The Infra sets no mode, and names and traffic lead to them.
func TestApplicationsAreReachedAtRoutersOnTheirWorkers(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	ready(t, ctx)
	asWorker(t, ctx, "on-its-worker", firstIP)
	pem, client := externalHost(t, ctx, ":8080", ":8443")
	managementPods(t, ctx, "c1", pem)
	grant(t, ctx)
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "-n", "clusters", "patch", "infra", "c1", "--type=merge", "-p", `{"spec":{"appsIngress":null}}`)
		return err
	})
	must(t, scene.Until(ctx, "the IngressController", func(ctx context.Context) error { return applyToGuest(ctx, ingressController) })) // a kind that is new is not served at once
	afterwards(t, func(ctx context.Context) error {
		_, err := hosted(ctx, "c1", "delete", "crd/ingresscontrollers.operator.openshift.io", "namespace/openshift-ingress-operator", "--ignore-not-found")
		return err
	})

	appsIngress(t, ctx, `{"enabled":true}`)
	apps(t, ctx, "Pending", "RouterNotFound")
	must(t, applyToGuest(ctx, routerPod))
	afterwards(t, func(ctx context.Context) error {
		_, err := hosted(ctx, "c1", "-n", "openshift-ingress", "delete", "pod", "router-default-0", "--force", "--grace-period=0", "--ignore-not-found")
		return err
	})
	apps(t, ctx, "Pending", "NoReadyRouter")
	inGuest(t, ctx, "-n", "openshift-ingress", "patch", "pod", "router-default-0", "--subresource=status", "--type=merge", "-p",
		`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	apps(t, ctx, "Ready", "Serving")
	answered(t, ctx, client, appsHost, vips(t, ctx, "c1"))
	answered(t, ctx, inPod, appsHost, proxyService(t, ctx, "c1"))
	appServed(t, ctx, client)
	appServed(t, ctx, inPod)
	ready(t, ctx)
}

// asWorker adds a Node to hosted cluster c1 at an address of the VLAN, with a known machine.
func asWorker(t *testing.T, ctx context.Context, name, address string) {
	t.Helper()
	machine := []string{"worker", "--cluster", "c1", "--name", name, "--mac", "52:54:00:00:01:c8"}
	_, err := lab.Standin(ctx, machine...)
	must(t, err)
	afterwards(t, func(ctx context.Context) error {
		if _, err := hosted(ctx, "c1", "delete", "node", name, "--ignore-not-found"); err != nil {
			return err
		}
		_, err := lab.Standin(ctx, append(machine, "--remove")...)
		return err
	})
	must(t, applyToGuest(ctx, "{apiVersion: v1, kind: Node, metadata: {name: "+name+"}}"))
	inGuest(t, ctx, "patch", "node", name, "--subresource=status", "--type=merge", "-p", `{"status":{"addresses":[{"type":"InternalIP","address":"`+address+`"}]}}`)
}
