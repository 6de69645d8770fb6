package cmd

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
)

// Whoever has no kubeconfig is told where it was looked for, and nothing that does not help.
func TestAMissingKubeconfigIsNamed(t *testing.T) {
	for _, command := range [][]string{{"status", "c1"}, {"diff", "-f", preflightExamples + "good/isolated.yaml"}, {"leases", "list"}, {"check", "-n", "a"}} {
		cannotBegin(t, "/none: give one with --kubeconfig or $KUBECONFIG", command)
	}
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	root := Root()
	root.SetArgs([]string{"status", "c1", "--kubeconfig", "missing"})
	err := root.Execute()
	NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("finding the cluster: "), ContainSubstring("missing"))))
}

// A load balancer with nobody behind it takes connections and never answers: each command ends, and says where to look.
func TestAnAPIServerThatNeverAnswersIsNamed(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { silent.Close() })
	at := "http://" + silent.Addr().String()
	file := kubeconfigFor(t, at)
	for _, command := range [][]string{{"status", "c1"}, {"diagnose", "c1"}, {"leases", "list"}, {"sysdump", "-o", filepath.Join(t.TempDir(), "dump")}, {"bridge", "status", "b"}} {
		t.Run(command[0], func(t *testing.T) {
			t.Parallel()
			root := Root()
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			root.SetArgs(append(command, "--kubeconfig", file))
			ended := make(chan error, 1)
			go func() { ended <- root.ExecuteContext(t.Context()) }()
			NewWithT(t).Eventually(ended).WithTimeout(5 * tellsKindsWithin).Should(Receive(MatchError(And(
				ContainSubstring("no answer from "+at+" in time"), Not(ContainSubstring("Client.Timeout")), Not(ContainSubstring("Get \"")),
			))))
		})
	}
}

func kubeconfigFor(t *testing.T, server string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "kubeconfig")
	NewWithT(t).Expect(clientcmd.WriteToFile(api.Config{
		Clusters: map[string]*api.Cluster{"a": {Server: server}}, Contexts: map[string]*api.Context{"a": {Cluster: "a"}}, CurrentContext: "a",
	}, file)).To(Succeed())
	return file
}

// What stands before an API server answers in its place, and after oc logout a kubeconfig has no credentials: neither is told in client-go's words alone.
func TestWhoAnswersInsteadOfTheAPIServerIsNamed(t *testing.T) {
	const version, status = `{"gitVersion": "v1.36.3"}`, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "%s", "reason": "%s", "code": %d}`
	refused := func(message, reason string, code int) answer {
		return answer{code, "application/json", fmt.Sprintf(status, message, reason, code)}
	}
	for name, c := range map[string]struct {
		answer
		says string
	}{
		"a proxy that asks for a login":  {answer{200, "text/html; charset=utf-8", "<html><head><title>\nBank login </title>"}, `a web page with HTTP status 200, titled "Bank login", came instead of`},
		"a proxy that refuses":           {answer{403, "text/html", "<h1>Access denied</h1>"}, `HTTP status 403, titled "Access denied", came instead of`},
		"a load balancer without anyone": {answer{503, "text/html", ""}, "a web page with HTTP status 503 came instead of"},
		"a token that has expired":       {refused("Unauthorized", "Unauthorized", 401), "you are not logged in, or no longer"},
		"no token":                       {refused(`forbidden: User \"system:anonymous\" cannot get path \"/api\"`, "Forbidden", 403), "you are not logged in, or no longer"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			says := c.answer
			if r.URL.Path == "/version" && c.kind == "application/json" { // which OpenShift tells everybody
				says = answer{200, c.kind, version}
			}
			w.Header().Set("Content-Type", says.kind)
			w.WriteHeader(says.status)
			_, _ = io.WriteString(w, says.body)
		}))
		t.Cleanup(server.Close)
		file := kubeconfigFor(t, server.URL)
		commands := [][]string{{"status", "c1"}, {"check"}, {"leases", "list"}, {"sysdump", "-o", filepath.Join(t.TempDir(), "dump")}, {"bridge", "status", "b"}, {"diff", "-f", preflightExamples + "good/isolated.yaml"}}
		if c.kind == "application/json" { // the pages of a cluster that cannot be reached say so themselves, and go on trying
			commands = append(commands, []string{"ui"})
		}
		for _, command := range commands {
			root := Root()
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			root.SetArgs(append(command, "--kubeconfig", file))
			err := root.ExecuteContext(t.Context())
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)), "%s: %v", name, command)
			NewWithT(t).Expect(ExitCode(err)).To(Equal(unusable), "%s: %v", name, command)
		}
	}
}

type answer struct {
	status     int
	kind, body string
}

// A connection that a firewall forgets in the middle of an answer is not waited for. status and diagnose have less time than that.
func TestAnAnswerThatDoesNotEndIsGivenUp(t *testing.T) {
	was := answersWithin
	answersWithin = 200 * time.Millisecond
	t.Cleanup(func() { answersWithin = was })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			_, _ = io.WriteString(w, `{"gitVersion": "v1.36.3"}`)
			return
		}
		_, _ = io.WriteString(w, "{")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(func() {
		server.CloseClientConnections() // which Close waits for
		server.Close()
	})
	root := Root()
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	root.SetArgs([]string{"check", "--kubeconfig", kubeconfigFor(t, server.URL)})
	ended := make(chan error, 1)
	go func() { ended <- root.ExecuteContext(t.Context()) }()
	NewWithT(t).Eventually(ended).WithTimeout(time.Minute).Should(Receive(MatchError(ContainSubstring("not all could be read"))))
}

// An answer that is cut is one line, and not also one of client-go's log.
func TestAPersonIsSparedTheLog(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "{")
	}))
	t.Cleanup(server.Close)
	var log bytes.Buffer
	klog.ClearLogger()
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	t.Cleanup(func() { klog.LogToStderr(true); klog.ClearLogger() })
	root := Root()
	root.SetArgs([]string{"status", "c1", "--kubeconfig", kubeconfigFor(t, server.URL)})
	g.Expect(root.ExecuteContext(t.Context())).To(MatchError(ContainSubstring("unexpected EOF")))
	klog.Flush()
	g.Expect(log.String()).To(BeEmpty())
}
