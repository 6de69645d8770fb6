package cmd

import (
	"bytes"
	"io"
	"net"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd/api"
)

const namedObjects = `
kubectl create namespace clusters
kubectl create namespace others
for at in clusters/c1 clusters/c2 clusters/d1 others/c7; do
kubectl apply -f - <<E
{apiVersion: hostedcluster.densityops.com/v1alpha1, kind: Infra, metadata: {namespace: ${at%/*}, name: ${at#*/}}, spec: {hostedClusterRef: {name: ${at#*/}}, networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: v}}}
E
done
kubectl apply -f config/samples/dpuhcpbridge.yaml -n clusters
kubectl apply -f - <<E
{apiVersion: hostedcluster.densityops.com/v1alpha1, kind: DHCPServer, metadata: {namespace: clusters, name: c1-dhcp}, spec: {networkConfig: {cidr: 192.168.100.0/24, gateway: 192.168.100.1, serverIP: 192.168.100.2, networkAttachmentDefinition: v}, leaseConfig: {rangeStart: 192.168.100.10, rangeEnd: 192.168.100.20}}}
E
`

// A shell gets the names of what is in the namespace that was typed, and begins so; who may not list it gets none.
func TestNamesAreCompleted(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	s.runs(namedObjects)
	for typed, offered := range map[string]string{
		"status -n clusters c":                        "c1\nc2\n:4\n",
		"status -n others c":                          "c7\n:4\n",
		"status -n clusters x":                        ":4\n",
		"status -n clusters c1 c":                     ":4\n",
		"status -n clusters --as anna c":              ":4\n",
		"status -n clusters --context none c":         ":4\n",
		"diagnose -n clusters c":                      "c1\nc2\n:4\n",
		"move -n clusters --to x c":                   "c1\nc2\n:4\n",
		"leases list -n clusters --server c":          "c1-dhcp\n:4\n",
		"bridge status -n clusters d":                 "dpu1\n:4\n",
		"bridge upgrade -n clusters --plan d":         "dpu1\n:4\n",
		"csr explain -n clusters csr-x --bridge dpu1": "dpu1\n:4\n",
	} {
		s.Expect(s.runs("oooi __complete "+typed+" 2>/dev/null")).To(Equal(offered), typed)
	}
}

// Who presses the tabulator key is not kept waiting by an API server that does not answer, or a plugin that waits for a login.
func TestNamesAreNotWaitedFor(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { silent.Close() })
	cluster := api.Cluster{Server: "https://" + silent.Addr().String()}
	login := &api.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "sh", Args: []string{"-c", "exec sleep 30 2>&-"}, InteractiveMode: "Never"}
	for name, user := range map[string]api.AuthInfo{"nobody answers": {}, "a plugin waits": {Exec: login}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			root := Root()
			root.SetOut(&out)
			root.SetErr(io.Discard)
			root.SetArgs([]string{"__complete", "status", "--kubeconfig", kubeconfigOf(t, cluster, user), "c"})
			ended := make(chan error, 1)
			go func() { ended <- root.ExecuteContext(t.Context()) }()
			NewWithT(t).Eventually(ended).WithTimeout(completesWithin + 10*time.Second).Should(Receive(Succeed()))
			NewWithT(t).Expect(out.String()).To(Equal(":4\n"))
		})
	}
}
