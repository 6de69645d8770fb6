package cmd

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

const beforeAnUpgrade = `
for namespace in clusters hypershift oooi-system; do kubectl create namespace $namespace; done
kubectl create configmap -n hypershift supported-versions --from-literal=supported-versions='{"versions":["4.20","4.19"]}'
kubectl create configmap -n oooi-system ocp-bluefield-images --from-literal=4.20.5=quay.io/example/rhcos-bluefield:4.20.5
kubectl apply -f config/samples/dpuhcpbridge.yaml -n clusters
`

// hostedClusterOfTheBridge is as far as the bridge has made it, and HyperShift says that its control plane runs.
const hostedClusterOfTheBridge = `
kubectl apply -f - <<E
apiVersion: hypershift.openshift.io/v1beta1
kind: HostedCluster
metadata:
  name: dpu1
  namespace: clusters
  labels: {app.kubernetes.io/managed-by: oooi, hostedcluster.densityops.com/owner-uid: u1, provisioning.dpu.hcp.io/bridge: dpu1, provisioning.dpu.hcp.io/bridge-namespace: clusters}
spec:
  dns: {baseDomain: example.com}
  networking: {networkType: Other}
  platform: {type: None}
  pullSecret: {name: dpu1-pull-secret}
  sshKey: {name: dpu1-ssh-key}
  release: {image: "$(kubectl get dpuhcp dpu1 -n clusters -o jsonpath='{.spec.ocpReleaseImage}')"}
  services:
  - {service: APIServer, servicePublishingStrategy: {type: NodePort, nodePort: {address: 10.0.0.2}}}
  - {service: OAuthServer, servicePublishingStrategy: {type: NodePort, nodePort: {address: 10.0.0.2}}}
  - {service: Konnectivity, servicePublishingStrategy: {type: NodePort, nodePort: {address: 10.0.0.2}}}
  - {service: Ignition, servicePublishingStrategy: {type: NodePort, nodePort: {address: 10.0.0.2}}}
E
kubectl patch hostedcluster dpu1 -n clusters --subresource status --type merge -p '{"status":{"conditions":[
	{"type":"Progressing","status":"False","observedGeneration":1,"reason":"AsExpected","message":"","lastTransitionTime":"2026-11-21T09:00:00Z"}]}}'
`

// The steps of an upgrade are read from a cluster, and the release is set only when it comes next.
func TestAnUpgradeReadsItsSteps(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	s.runs(beforeAnUpgrade)
	const upgrade = "oooi bridge upgrade dpu1 -n clusters --to quay.io/openshift-release-dev/ocp-release:4.20.5-multi "
	release := func() string {
		return s.runs("kubectl get dpuhcp dpu1 -n clusters -o jsonpath='{.spec.ocpReleaseImage}'")
	}
	before := release()
	s.Expect(s.runs("! " + upgrade)).To(ContainSubstring("the operator has not seen the newest spec of the bridge"))
	s.Expect(release()).To(Equal(before))

	s.runs(`kubectl patch dpuhcp dpu1 -n clusters --subresource status --type merge -p '{"status":{"observedGeneration":1,"conditions":[
		{"type":"Ready","status":"True","reason":"AsExpected","message":"","lastTransitionTime":"2026-11-21T09:00:00Z"}]}}'`)
	s.Expect(s.runs("! " + upgrade)).To(ContainSubstring("there is no HostedCluster yet"))
	s.runs(hostedClusterOfTheBridge)
	s.Expect(s.runs(upgrade + "--plan")).To(And(MatchRegexp(`MCE +done +HyperShift supports 4.20, 4.19`), MatchRegexp(`hosted cluster +next`)))
	s.Expect(release()).To(Equal(before), "a plan changes nothing")
	s.Expect(s.runs("! oooi bridge upgrade dpu1 -n clusters --to quay.io/openshift-release-dev/ocp-release:4.20.6-multi")).To(ContainSubstring("add a key (4.20.6) to ConfigMap oooi-system/ocp-bluefield-images"))
	s.Expect(s.runs("! " + upgrade + "--plan --operator-namespace clusters --bluefield-images ours")).To(ContainSubstring("add a key (4.20.5) to ConfigMap clusters/ours"))
	s.runs(`kubectl patch configmap -n hypershift supported-versions --type merge -p '{"data":{"supported-versions":"{\"versions\":[\"4.19\"]}"}}'`)
	s.Expect(s.runs("! " + upgrade)).To(MatchRegexp(`MCE +next`))
	s.Expect(release()).To(Equal(before), "MCE comes first")
	s.Expect(s.runs("kubectl delete configmap -n hypershift supported-versions && " + upgrade)).To(ContainSubstring("ocpReleaseImage is set"))
	s.Expect(release()).To(HaveSuffix(":4.20.5-multi"))
	s.Expect(s.runs("! "+upgrade)).To(ContainSubstring("has not seen the newest spec"), "it has just been changed")
	s.runs("! oooi bridge upgrade dpu2 -n clusters --to a.b/c:d")
}
