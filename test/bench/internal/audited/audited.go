// Package audited runs a manager beside a kube-apiserver of its own, whose audit log shows what it writes.
package audited

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cldmnky/oooi/internal/dpf"
	testkit "github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/test/bench/internal/process"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

// Cluster has our CRDs and others', no nodes, and, once it runs, a manager.
type Cluster struct {
	Config *rest.Config

	dir    string
	env    *envtest.Environment
	audit  *bufio.Reader
	line   string    // of the audit log, as far as it has been read
	writes []Write   // those that were read
	lists  int       // of DPUs
	last   time.Time // time of the last write

	manager *exec.Cmd
	log     string
	ended   chan error

	elsewhere bool
	// cgroups of the manager.
	cgroups []string
}

// Write is a mutating call by the manager.
type Write struct {
	Verb           string
	ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
}

// Created says whether it created an object.
func (w Write) Created() bool { return w.ResponseStatus.Code == http.StatusCreated }

func (w Write) String() string {
	o := w.ObjectRef
	return strings.Join([]string{w.Verb, o.Resource, o.Subresource, o.Namespace + "/" + o.Name}, " ")
}

// Start starts a cluster.
func Start() (c *Cluster, err error) {
	log.SetLogger(logr.Discard()) // controller-runtime's
	foreign, err := testkit.Foreign()
	if err != nil {
		return nil, err
	}
	c = &Cluster{env: &envtest.Environment{CRDDirectoryPaths: []string{"config/crd/bases"}, CRDs: foreign, ErrorIfCRDPathMissing: true}}
	if c.dir, err = os.MkdirTemp("", "oooi-audited"); err != nil {
		return nil, err
	}
	policy, audit := filepath.Join(c.dir, "policy.yaml"), filepath.Join(c.dir, "audit.log")
	err = os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, verbs: [create, update, patch, delete, deletecollection]}, "+
		"{level: Metadata, verbs: [list], resources: [{group: "+dpf.GroupVersion.Group+", resources: [dpus]}]}, {level: None}]\n"), 0o600)
	if err != nil {
		return nil, err
	}
	c.env.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", audit).
		Set("service-cluster-ip-range", "10.96.0.0/12").Set("max-requests-inflight", "2000").Set("max-mutating-requests-inflight", "1000")
	if c.Config, err = c.env.Start(); err != nil {
		return nil, err
	}
	c.Config.QPS = -1
	entries, err := os.Open(audit)
	if err == nil {
		c.audit = bufio.NewReader(entries)
		err = os.WriteFile(filepath.Join(c.dir, "kubeconfig"), c.env.KubeConfig, 0o600)
	}
	if err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// Stop ends the manager and the cluster.
func (c *Cluster) Stop() {
	if c.manager != nil {
		_ = c.manager.Process.Kill()
		<-c.ended //nolint:errcheck // it was killed
	}
	for _, dir := range c.cgroups { // they are empty
		_ = os.Remove(dir)
	}
	if c.elsewhere {
		_ = elsewhere("del")
	}
	_ = c.env.Stop() // it ends with this process
	_ = os.RemoveAll(c.dir)
}

// Manage starts a command that becomes the manager. Its log outlives it.
func (c *Cluster) Manage(manager *exec.Cmd) error {
	c.log = filepath.Join(os.TempDir(), filepath.Base(os.Args[0])+"-manager.log")
	out, err := os.Create(c.log)
	if err != nil {
		return err
	}
	manager.Env = append(testkit.Environ(), "KUBECONFIG="+filepath.Join(c.dir, "kubeconfig"), "GODEBUG=gctrace=1")
	manager.Stdout, manager.Stderr = out, out
	if err := manager.Start(); err != nil {
		return err
	}
	c.manager, c.ended = manager, make(chan error, 1)
	go func() { c.ended <- manager.Wait() }()
	return nil
}

// Until polls until something is so, as long as the manager runs.
func (c *Cluster) Until(ctx context.Context, so func() (bool, error)) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if is, err := so(); is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-c.ended:
			c.ended <- err
			return fmt.Errorf("the manager ended, see %s: %w", c.log, err)
		case <-tick.C:
		}
	}
}

// Steady is what an idle manager did and used.
type Steady struct {
	before, meanwhile []Write
	idle              time.Duration
	rss, then, live   table.MiB
}

// Idle waits until the manager has written nothing for five seconds, then for length, and returns what it did and used.
func (c *Cluster) Idle(ctx context.Context, length time.Duration) (s Steady, err error) {
	s.idle = length
	if err := c.Settle(ctx); err != nil {
		return s, err
	}
	s.before = c.writes
	if s.rss, err = c.rss(); err != nil {
		return s, err
	}
	Progress("settled after %d mutating calls; counting for %s", len(s.before), length)
	select {
	case <-ctx.Done():
		return s, ctx.Err()
	case <-time.After(length): // this is the measurement
	}
	all, err := c.Writes()
	if err != nil {
		return s, err
	}
	s.meanwhile = all[len(s.before):]
	if s.then, err = c.rss(); err != nil {
		return s, err
	}
	s.live, err = c.liveHeap()
	return s, err
}

// Rows adds the results to a table, for this many objects.
func (s Steady) Rows(t *table.Table, count int, kind string, most table.MiB) {
	t.Say("mutating calls of one "+kind+" until then", fmt.Sprintf("%.1f", float64(len(s.before))/float64(count)))
	t.None(fmt.Sprintf("mutating calls in %s after", s.idle), len(s.meanwhile))
	for _, w := range s.meanwhile {
		t.Say("", w)
	}
	table.Below(t, "manager RSS before", s.rss, most)
	table.Below(t, "and after", s.then, most)
	t.Say("of it live heap, when last collected", s.live)
}

// Settle waits until the manager has written nothing for five seconds.
func (c *Cluster) Settle(ctx context.Context) error {
	const limit = time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the manager still wrote %s after everything was there", limit))
	defer cancel()
	return c.Until(ctx, func() (bool, error) {
		_, err := c.Writes()
		return time.Since(c.last) > 5*time.Second, err
	})
}

// Writes of the manager so far, without leader election. They come from the audit log, because listing objects would load the API server
// more than the manager does.
func (c *Cluster) Writes() ([]Write, error) {
	for {
		line, err := c.audit.ReadString('\n')
		if c.line += line; errors.Is(err, io.EOF) {
			return c.writes, nil // the rest of the line is still to come
		}
		if err != nil {
			return nil, err
		}
		var e struct {
			UserAgent string
			Write
		}
		if err := json.Unmarshal([]byte(c.line), &e); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		c.line = ""
		switch ours := strings.HasPrefix(e.UserAgent, "oooi/"); {
		case ours && e.Verb == "list":
			c.lists++
		case ours && e.ObjectRef.Resource != "leases":
			c.last, c.writes = time.Now(), append(c.writes, e.Write)
		}
	}
}

// Used is what the manager has used so far of what it shares with others.
type Used struct {
	Lists, Events, Writes int // lists of DPUs, created Events, and all writes, including those of Events
	Processor             time.Duration
}

// Since is the difference to an earlier moment.
func (u Used) Since(before Used) Used {
	return Used{u.Lists - before.Lists, u.Events - before.Events, u.Writes - before.Writes, u.Processor - before.Processor}
}

// Used by the manager so far.
func (c *Cluster) Used() (u Used, err error) {
	all, err := c.Writes()
	if err != nil {
		return u, err
	}
	u.Lists, u.Writes = c.lists, len(all)
	for _, w := range all {
		if w.ObjectRef.Resource == "events" {
			u.Events++
		}
	}
	u.Processor, err = process.Processor(c.manager.Process.Pid)
	return u, err
}

// rss is the manager's resident memory.
func (c *Cluster) rss() (table.MiB, error) { return process.Resident(c.manager.Process.Pid) }

// Peak is the manager's highest resident memory so far.
func (c *Cluster) Peak() (table.MiB, error) { return process.Peak(c.manager.Process.Pid) }

// liveHeap is the manager's live heap at its last garbage collection (package runtime, GODEBUG gctrace).
func (c *Cluster) liveHeap() (live table.MiB, err error) {
	var before, after int
	err = lastLine(c.log, "gc ", func(line string) error {
		_, sizes, _ := strings.Cut(line, " ms cpu, ")
		_, err := fmt.Sscanf(sizes, "%d->%d->%f MB", &before, &after, &live)
		return err
	})
	return live, err
}

// lastLine reads the last line of a file that begins with this.
func lastLine(path, begin string, read func(line string) error) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	found := ""
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, begin) {
			found = line
		}
	}
	if err := read(found); err != nil {
		return fmt.Errorf("%s: the last line %q is %q: %w", path, begin, found, err)
	}
	return nil
}

// Progress tells whoever waits.
func Progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}
