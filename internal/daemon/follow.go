package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// settleTime lets an editor finish: many truncate and write in two steps.
const settleTime = 100 * time.Millisecond

// Follower keeps a daemon configured from its own object T, or from a file with the same YAML.
type Follower[T client.Object] struct {
	// New makes an empty object.
	New func() T
	// Apply makes the daemon serve an object. On an error it goes on serving the previous one.
	Apply func(context.Context, T) error
	// Rejected, if set, gets the error for each configuration that is not served, and nil once one is.
	Rejected func(error)
	// Deleted, if set, is called when the object is gone from the cluster; the daemon goes on serving.
	Deleted func()
	// StateDir keeps the last object that was applied; empty keeps none.
	StateDir string
	// Serving: there is something to fall back to. It becomes true with the first object that is applied.
	Serving bool
	Log     *slog.Logger

	refusal string // the last one that was logged
}

// news is a new object, or why there is none.
type news[T client.Object] struct {
	object  T
	err     error
	deleted bool
}

// File follows a file until ctx ends. A bad file is reported and changes nothing; at the start, with nothing to fall back to, it is an
// error.
func (f *Follower[T]) File(ctx context.Context, path string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching %s: %w", path, err)
	}
	defer watcher.Close()
	// It watches the directory, since editors and ConfigMap volumes replace the file itself.
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		return fmt.Errorf("watching %s: %w", path, err)
	}
	f.restore(ctx)
	content, first := f.readFile(path)
	latest := make(chan news[T], 1)
	if f.Serving {
		latest <- first
	} else if err := f.consider(ctx, first); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.serve(ctx, latest) })
	group.Go(func() error { return f.reread(ctx, path, content, watcher.Events, latest) })
	return group.Wait()
}

// reread sends each change of the file's content.
func (f *Follower[T]) reread(ctx context.Context, path string, content []byte, events <-chan fsnotify.Event, latest chan news[T]) error {
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-events:
			// Counted from the first event, not the last: a file beside it that is written without a pause (the lease file) must not delay
			// reading for ever.
			if settled == nil {
				settled = time.After(settleTime)
			}
		case <-settled:
			settled = nil
			now, changed := f.readFile(path)
			if !bytes.Equal(now, content) {
				content = now
				replace(latest, changed)
			}
		}
	}
}

// readFile reads an object; the content is nil if the file cannot be read.
func (f *Follower[T]) readFile(path string) ([]byte, news[T]) {
	content, err := readRegular(path)
	if err != nil {
		return nil, news[T]{err: fmt.Errorf("reading the configuration: %w", err)}
	}
	object := f.New()
	if err := Decode(content, object); err != nil {
		return content, news[T]{err: fmt.Errorf("reading %s: %w", path, err)}
	}
	return content, news[T]{object: object}
}

// readRegular reads a file that ends. A pipe would be waited for, whatever signal comes.
func readRegular(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file (%v): write the configuration into one", path, info.Mode().Type())
	}
	return os.ReadFile(path)
}

// Object follows one object of the cluster, by namespace and name, until ctx ends. While the API server is away, the last good copy is
// served. list is the kind's list type.
func (f *Follower[T]) Object(ctx context.Context, c client.WithWatch, list client.ObjectList, key client.ObjectKey) error {
	f.restore(ctx)
	own := []client.ListOption{client.InNamespace(key.Namespace), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", key.Name)}}
	latest := make(chan news[T], 1)
	changed := func(object any) { replace(latest, news[T]{object: object.(T)}) }
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.serve(ctx, latest) })
	Informer(c, f.New(), list, own, cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, now any) { changed(now) },
		DeleteFunc: func(any) { replace(latest, news[T]{deleted: true}) },
	}).RunWithContext(ctx)
	return group.Wait()
}

// replace sends news in place of older news that nobody has received yet. Only one goroutine calls it.
func replace[T any](latest chan T, now T) {
	select {
	case <-latest:
	default:
	}
	latest <- now
}

// serve applies the newest object, and retries with growing pauses while that fails: what it lacks (an address, a port) may come.
func (f *Follower[T]) serve(ctx context.Context, latest <-chan news[T]) error {
	var now news[T]
	var retry <-chan time.Time
	for pause := firstRetry; ; {
		select {
		case <-ctx.Done():
			return nil
		case now = <-latest:
			pause = firstRetry
		case <-retry:
		}
		retry = nil
		if now.deleted {
			f.tellDeleted()
		} else if err := f.consider(ctx, now); err != nil && now.err == nil {
			retry = time.After(pause)
			pause = min(2*pause, lastRetry)
		}
	}
}

func (f *Follower[T]) tellDeleted() {
	if f.Deleted != nil {
		f.Deleted()
	}
}

// consider applies an object, remembers it as the last good one, and reports the outcome.
func (f *Follower[T]) consider(ctx context.Context, now news[T]) error {
	err := now.err
	if err == nil {
		err = f.Apply(ctx, now.object)
	}
	f.report(err)
	if err != nil {
		return err
	}
	f.Serving = true
	f.remember(now.object)
	return nil
}

func (f *Follower[T]) report(err error) {
	if err != nil && err.Error() != f.refusal {
		stays := "what serves stays"
		if !f.Serving {
			stays = "nothing is served"
		}
		f.Log.Error("configuration refused; "+stays, "error", err)
	}
	f.refusal = ""
	if err != nil {
		f.refusal = err.Error()
	}
	if f.Rejected != nil {
		f.Rejected(err)
	}
}

func (f *Follower[T]) lastGood() string { return filepath.Join(f.StateDir, "last-good.yaml") }

// remember stores the object without its managed fields.
func (f *Follower[T]) remember(object T) {
	if f.StateDir == "" {
		return
	}
	kept := object.DeepCopyObject().(T)
	kept.SetManagedFields(nil)
	content, err := yaml.Marshal(kept)
	if err == nil {
		err = WriteFile(f.lastGood(), content)
	}
	if err != nil {
		f.Log.Error("the last good configuration is not kept", "error", err)
	}
}

// restore applies the last good object of an earlier run. A failure is only logged: the newest object comes next.
func (f *Follower[T]) restore(ctx context.Context) {
	if f.StateDir == "" {
		return
	}
	object := f.New()
	content, err := os.ReadFile(f.lastGood())
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = yaml.Unmarshal(content, object)
	}
	if err == nil {
		err = f.Apply(ctx, object)
	}
	if err != nil {
		f.Log.Error("the last good configuration is not restored", "error", err)
		return
	}
	f.Serving = true
	f.Log.Info("serving the last good configuration", "file", f.lastGood())
}
