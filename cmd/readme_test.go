package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// readmeTakesForGranted is an admin's HostedCluster, and an Infra's workload, whose template a command of the README updates.
const readmeTakesForGranted = `
mkdir bin services
ln -s ../oooi bin/oooi
kubectl create namespace clusters
kubectl apply -f - <<E
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
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: c1-proxy-deployment, namespace: clusters, labels: {app.kubernetes.io/managed-by: oooi}, annotations: {hostedcluster.densityops.com/released: digest}}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}
E
`

// The README's kubectl and oooi commands run in order, except for the one that waits for the operator's pods, and the plugin, which has a test of
// its own.
func TestTheReadmesCommands(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	s.runs(readmeTakesForGranted)
	example, err := os.ReadFile(preflightExamples + "good/control-plane-is-up.yaml")
	s.Expect(err).NotTo(HaveOccurred())
	files := map[string]string{"Infra": "infra", "HostedCluster": "hostedcluster", "NodePool": "nodepool", "NetworkAttachmentDefinition": "nad"}
	for i, document := range strings.Split(string(example), "\n---\n") {
		_, kind, _ := strings.Cut(document, "kind: ")
		kind, _, _ = strings.Cut(kind, "\n")
		name, alone := files[kind]
		if !alone {
			name = fmt.Sprintf("services/%d", i)
		}
		s.Expect(os.WriteFile(filepath.Join(s.dir, name+".yaml"), []byte(document), 0o600)).To(Succeed())
	}
	for _, b := range blocks(pages(t)["README.md"]) {
		for _, line := range b.commands() {
			if strings.HasPrefix(line, "bin/oooi ") || strings.HasPrefix(line, "kubectl ") && !strings.Contains(line, "rollout status") && !strings.HasPrefix(line, "kubectl oooi") {
				s.runs(line)
			}
		}
	}
	s.Expect(s.runs(`kubectl get deployment c1-proxy-deployment -n clusters -o jsonpath='{.metadata.annotations.hostedcluster\.densityops\.com/released}'`)).To(BeEmpty())
}
