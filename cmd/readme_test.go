package cmd

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// adminsHostedCluster is one that the API server takes.
const adminsHostedCluster = `
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedCluster
metadata: {name: c1, namespace: clusters}
spec:
  platform: {type: None}
  pullSecret: {name: pull}
  release: {image: quay.io/openshift-release-dev/ocp-release:4.20.4-multi}
  services:
  - {service: APIServer, servicePublishingStrategy: {type: LoadBalancer}}
  - {service: OAuthServer, servicePublishingStrategy: {type: Route}}
  - {service: Ignition, servicePublishingStrategy: {type: Route}}
  - {service: Konnectivity, servicePublishingStrategy: {type: Route}}
`

// readmeTakesForGranted is an admin's HostedCluster, and an Infra's workload, whose template a command of the README updates.
const readmeTakesForGranted = `
mkdir bin
ln -s ../oooi bin/oooi
kubectl create namespace clusters
kubectl apply -f - <<E` + adminsHostedCluster + `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: c1-proxy-deployment, namespace: clusters, labels: {app.kubernetes.io/managed-by: oooi}, annotations: {hostedcluster.densityops.com/released: digest}}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}
E
`

// The README's kubectl and oooi commands run in order, except for the one that waits for the operator's pods.
func TestTheReadmesCommands(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	s.runs(readmeTakesForGranted)
	s.writesExample()
	for _, b := range blocks(pages(t)["README.md"]) {
		for _, line := range b.commands() {
			if strings.HasPrefix(line, "bin/oooi ") || strings.HasPrefix(line, "kubectl ") && !strings.Contains(line, "rollout status") {
				s.runs(line)
			}
		}
	}
	s.Expect(s.runs(`kubectl get deployment c1-proxy-deployment -n clusters -o jsonpath='{.metadata.annotations.hostedcluster\.densityops\.com/released}'`)).To(BeEmpty())
}
