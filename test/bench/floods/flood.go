package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/daemon"
	testenv "github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/test/bench/internal/audited"
	"github.com/cldmnky/oooi/test/bench/internal/segment"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

// service that guests use.
type service struct {
	name component.Name
	// server is the YAML of the object that configures it.
	server  func() string
	attacks []attack
	// begin starts what is beside the pod, and returns how another guest uses the service for a time.
	begin func(context.Context, *pod) (usage, error)
	peer  func() peer
}

// attack by a guest; it returns what it did once its context ends.
type attack struct {
	name string
	run  func(context.Context) (did string, err error)
}

// calm is how long another guest is measured before an attack, once the pod has settled; settles is that time.
const calm, settles = 20 * time.Second, 5 * time.Second

// fewWrites is how many writes a second of the management API are too many.
const fewWrites = 20

// Of its memory limit, a container may use most, and grow by leaks in the second half of an attack, when all that the attack can fill is full.
// Go's collector, which lets a heap double before it begins, needs some of that.
const most, leaks = 0.8, 0.1

// flood is one attack on a new pod, and what came of it.
type flood struct {
	service
	attack
	length  time.Duration
	cluster *audited.Cluster
	ofPeer  bool // not of ours

	pod           *pod
	before, while period
	did           string
	polls, failed int // of /readyz
	unready       error
	used          [3][]used // of each container: before, at half time, at the end
}

// period is how another guest fared, and how often a second the management API was written to.
type period struct {
	uses   []*waits
	writes table.Rate
}

type usage func(context.Context, time.Duration) ([]*waits, error)

func (f *flood) run(ctx context.Context) error {
	audited.Progress("%s: %s%s", f.service.name, f.attack.name, map[bool]string{true: ", of the peer"}[f.ofPeer])
	s, err := newSegment()
	if err != nil {
		return err
	}
	defer s.Remove()
	f.pod, err = f.serve(ctx, s)
	defer f.pod.stop()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	uses, err := f.begin(ctx, f.pod)
	if err != nil {
		return err
	}
	if err := pause(ctx, settles); err != nil {
		return err
	}
	if f.before, err = f.measure(ctx, uses, calm); err != nil {
		return err
	}
	return f.attacked(ctx, uses)
}

// serve with a new pod of ours, or with a peer.
func (f *flood) serve(ctx context.Context, s *segment.Segment) (*pod, error) {
	if f.ofPeer {
		return startPeer(ctx, s, f.peer())
	}
	p := &pod{Segment: s}
	server, err := f.create(ctx)
	if err != nil {
		return p, err
	}
	return p, p.startServer(ctx, f.cluster.Config, f.service.name, server)
}

// create the object that configures the service.
func (f *flood) create(ctx context.Context) (client.Object, error) {
	all, err := testenv.Objects([]byte(f.server()), daemon.Scheme())
	if err != nil {
		return nil, err
	}
	api, err := client.New(f.cluster.Config, client.Options{Scheme: daemon.Scheme()})
	if err != nil {
		return nil, err
	}
	return all[0], api.Create(ctx, all[0])
}

func (f *flood) measure(ctx context.Context, uses usage, length time.Duration) (p period, err error) {
	before, err := f.cluster.Writes()
	if err != nil {
		return p, err
	}
	if p.uses, err = uses(ctx, length); err != nil {
		return p, err
	}
	after, err := f.cluster.Writes()
	p.writes = table.Rate(float64(len(after)-len(before)) / length.Seconds())
	return p, err
}

// attacked measures beside the attack.
func (f *flood) attacked(ctx context.Context, uses usage) (err error) {
	if f.used[0], err = f.use(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	guest, said := f.pod.On(hostile, self, "-attack="+f.attack.name, "-for="+f.length.String()), &bytes.Buffer{}
	guest.Stdout, guest.Stderr = said, said
	if err := guest.Start(); err != nil {
		return err
	}
	watched := make(chan error, 1)
	go func() { watched <- f.watch(ctx) }()
	f.while, err = f.measure(ctx, uses, f.length)
	err = errors.Join(err, <-watched)
	if ended := guest.Wait(); ended != nil {
		err = errors.Join(err, fmt.Errorf("the hostile guest: %w", ended))
	}
	if f.did = strings.TrimSpace(said.String()); err != nil {
		return fmt.Errorf("%w\n%s", err, f.did)
	}
	return nil
}

// watch the pod while the attack lasts.
func (f *flood) watch(ctx context.Context) (err error) {
	for second := time.Duration(0); second < f.length; second += time.Second {
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		f.polls++
		if err := f.pod.ready(); err != nil && !f.ofPeer {
			f.failed++
			f.unready = err
		}
		if second == f.length/2/time.Second*time.Second {
			if f.used[1], err = f.use(); err != nil {
				return err
			}
		}
	}
	f.used[2], err = f.use()
	return err
}

func (f *flood) use() (all []used, err error) {
	for _, c := range f.pod.containers {
		u, err := c.used()
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(length):
		return nil
	}
}

// tell what came of it.
func (f *flood) tell(t *table.Table, peer *flood) {
	t.Say(string(f.service.name)+": "+f.attack.name, f.did)
	for i, w := range f.while.uses {
		calm := f.before.uses[i]
		table.Below(t, fmt.Sprintf("  %s, p99 of %d", w.what, len(w.all)), w.p(99), w.within)
		t.Say("  slowest; without the attack p99 and slowest", fmt.Sprint(w.p(100), "; ", calm.p(99), ", ", calm.p(100)))
		t.None("  of them failed "+w.why(), w.failed)
		theirs := peer.while.uses[i]
		t.Say(fmt.Sprintf("  %s: p99, slowest, failed of %d; our p99, theirs being 1", f.peer().name, len(theirs.all)),
			fmt.Sprintf("%s, %s, %d; %.2g", theirs.p(99), theirs.p(100), theirs.failed, float64(w.p(99))/float64(theirs.p(99))))
	}
	t.None(fmt.Sprintf("  of %d times that the pod was asked, it was not ready %s", f.polls, orNothing(f.unready)), f.failed)
	table.Below(t, fmt.Sprintf("  writes a second, less the %v without the attack", f.before.writes), f.while.writes-f.before.writes, fewWrites)
	for i, c := range f.pod.containers {
		end := f.used[2][i]
		t.Say("  "+c.name+": memory and descriptors before, at half time, at the end", fmt.Sprint(f.used[0][i], "; ", f.used[1][i], "; ", end))
		t.Say("  part of a processor that it used", fmt.Sprintf("%.2f", (end.processor-f.used[0][i].processor).Seconds()/f.length.Seconds()))
		table.Below(t, "  its memory, at most 0.8 of the limit", end.anonymous, c.memory*most)
		table.Below(t, "  grown by in the second half", end.anonymous-f.used[1][i].anonymous, c.memory*leaks)
	}
}

func orNothing(err error) string {
	if err == nil {
		return ""
	}
	return "(" + err.Error() + ")"
}
