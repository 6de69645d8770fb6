package cmd

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

func TestNothingIsDrawnWithoutANameOrACluster(t *testing.T) {
	for says, args := range map[string][]string{
		"give one name":             {},
		"unknown flag: --nonsense":  {"c1", "--nonsense"},
		"none is in the kubeconfig": {"c1"},
	} {
		t.Run(says, func(t *testing.T) { cannotBegin(t, says, append([]string{"status"}, args...)) })
	}
}

const drawnInfra = `
kubectl create namespace clusters
kubectl apply -f - <<E
{apiVersion: hostedcluster.densityops.com/v1alpha1, kind: Infra, metadata: {namespace: clusters, name: c1}, spec: {hostedClusterRef: {name: c1}, networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: v}}}
E
ready() {
  kubectl patch infra c1 -n clusters --subresource status --type merge -p "{\"status\": {\"conditions\": [{\"type\": \"Ready\", \"status\": \"$1\", \"reason\": \"$2\", \"lastTransitionTime\": \"2026-11-21T09:00:00Z\", \"message\": \"$2 for a test\"}]}}"
}
code() { "$@" >out 2>err; echo "exit $?"; cat out err; }
`

// A script may wait for it by its exit code. Nobody sends an archive of a namespace that is none.
func TestTheStatusIsAnExitCodeToo(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	out := s.runs("set +e\n" + drawnInfra + `
code oooi status c1 -n clusters
ready False PoolExhausted
code oooi status c1 -n clusters
ready True Serving
code oooi status c1 -n clusters
code oooi status c2 -n clusters
code oooi sysdump -n clusterss -o dump
find . -name dump`)
	s.Expect(out).To(And(
		MatchRegexp(`exit 1\nInfra clusters/c1  unread\n  the operator has not looked at it yet`),
		MatchRegexp(`exit 1\nInfra clusters/c1  fail\n  PoolExhausted: PoolExhausted for a test\n\nVLAN 192.168.100.0/24 \(clusters/v\)`),
		ContainSubstring("Infra c1 is not ready"),
		MatchRegexp(`exit 0\nInfra clusters/c1  ok\n  Serving for a test`),
		MatchRegexp(`exit 2\nno Infra in namespace clusters is called c2: choose the Infra's namespace with -n`),
		MatchRegexp(`exit 2\nthere is no namespace clusterss: name that of the Infras with -n, or none for all\n?$`)))
}
