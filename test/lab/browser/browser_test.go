//go:build browser

package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var update = flag.Bool("update", false, "make the screenshots of docs/images")

// tab is a tab of Chromium, with what it asked for.
type tab struct {
	*testing.T
	ctx context.Context

	mu    sync.Mutex
	asked []string
}

func newTab(t *testing.T) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 900)) // the lab is root
	ctx, cancel := chromedp.NewExecAllocator(within(t), options...)
	t.Cleanup(cancel)
	b := &tab{T: t}
	b.ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	requests := chromedp.Events(b.ctx, network.RequestWillBeSent)
	go func() {
		for request, err := range requests {
			if err != nil {
				return // the tab is closed
			}
			b.mu.Lock()
			b.asked = append(b.asked, request.Request.URL)
			b.mu.Unlock()
		}
	}()
	b.do(call(network.Enable, network.EnableParams{}))
	return b
}

// call of the DevTools' protocol.
func call[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	must(b.T, chromedp.Do(b.ctx, actions...))
}

// value of an action.
func value[T any](b *tab, action chromedp.Action[T]) T {
	b.Helper()
	is, err := chromedp.Run(b.ctx, action)
	must(b.T, err)
	return is
}

// await a condition in JavaScript.
func (b *tab) await(condition string) {
	b.Helper()
	value(b, chromedp.Poll[bool](condition))
}

func (b *tab) open(url string) {
	b.Helper()
	b.do(chromedp.Navigate(url))
	b.await(`document.getElementById('live').textContent === 'live'`)
}

func (b *tab) scheme(is string) {
	b.Helper()
	b.do(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: is}}}))
}

// axe finds what somebody misses who does not see the page, or uses no mouse.
func (b *tab) axe(source string) {
	b.Helper()
	value(b, chromedp.Evaluate[bool](source+";true"))
	found := value(b, chromedp.Evaluate[string](`axe.run().then(r => JSON.stringify(r.violations.filter(v => ['serious', 'critical'].includes(v.impact)).map(v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html)])))`, chromedp.EvalAwaitPromise))
	if found != "[]" {
		b.Errorf("axe: %s", found)
	}
}

// count elements of a role, as they are told to who does not see the page: rows of the boot wall are laid out as grids.
func (b *tab) count(role string) (all int) {
	b.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		tree, err := cdp.Call(ctx, t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			return err
		}
		for _, n := range tree.Nodes {
			if n.Role != nil && string(n.Role.Value) == strconv.Quote(role) {
				all++
			}
		}
		return nil
	}))
	return all
}

func TestAPageIsForEverybody(t *testing.T) {
	g := newGround(t)
	g.cluster("c1")
	g.workers("c1", 8)
	g.create(strings.Replace(`{apiVersion: v1, kind: Secret, metadata: {namespace: c1, name: pull-secret}, stringData: {token: CANARY}}`, "CANARY", canary, 1))
	source, err := os.ReadFile(filepath.Join(os.Getenv("LAB_BIN"), "axe.min.js"))
	must(t, err)
	b := newTab(t)
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for _, page := range []string{"", "infras/c1/c1", "infras/c1/c1/workers/c1-w003"} {
			b.open(g.url + page)
			b.axe(string(source))
			html := value(b, chromedp.Evaluate[string](`document.documentElement.outerHTML`))
			if secret := strings.Split(g.url, "/")[3]; strings.Contains(html, canary) || strings.Contains(html, secret) {
				t.Errorf("page %q has a secret", page)
			}
			if page == "infras/c1/c1" && *update {
				picture := value(b, chromedp.FullScreenshot(100))
				must(t, os.MkdirAll(filepath.Join(repository, "docs/images"), 0o755))
				must(t, os.WriteFile(filepath.Join(repository, "docs/images", "ui-"+scheme+".png"), picture, 0o644))
			}
		}
	}
	b.open(g.url + "infras/c1/c1")
	if cells := b.count("cell"); cells < 8*18 {
		t.Errorf("%d cells are told to who does not see the page", cells)
	}
	b.await(`document.getElementById('w-c1-w000-link').focus() ?? true`)
	b.do(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	at := ""
	for end := time.Now().Add(time.Minute); !strings.HasSuffix(at, "/workers/c1-w001") && time.Now().Before(end); {
		at, _ = chromedp.Run(b.ctx, chromedp.Location()) // while the tab goes to another page it has none
	}
	if !strings.HasSuffix(at, "/workers/c1-w001") {
		t.Errorf("Tab and Enter lead to %s", at)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, url := range b.asked {
		if !strings.HasPrefix(url, g.url) && !strings.HasPrefix(url, "data:") {
			t.Errorf("%s is asked for: it is not ours", url)
		}
	}
	if len(b.asked) < 15 {
		t.Errorf("only %q were seen to be asked for", b.asked)
	}
}

func TestFiveHundredWorkersArePaintedAtOnceAndLive(t *testing.T) {
	g := newGround(t)
	g.cluster("many")
	g.workers("many", 500)
	b, painted := newTab(t), make([]time.Duration, 5)
	for i := range painted {
		b.open(g.url + "infras/many/many")
		painted[i] = time.Duration(value(b, chromedp.Evaluate[float64](`performance.getEntriesByName('first-contentful-paint')[0].startTime`)) * float64(time.Millisecond))
	}
	slices.Sort(painted)
	rows := value(b, chromedp.Evaluate[int](`document.querySelectorAll('.wall tbody tr').length`))
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("%d rows, first contentful paint after %s; load %s", rows, painted, load)
	if rows != 500 || painted[2] > 300*time.Millisecond {
		t.Errorf("%d rows, painted after %s", rows, painted)
	}
	var seen []time.Duration
	for _, worker := range []int{0, 250, 498} {
		began := time.Now()
		g.dials("many", worker)
		b.await(fmt.Sprintf(`[...document.getElementById('w-many-w%03d').cells].at(-2).textContent === 'ok'`, worker))
		seen = append(seen, time.Since(began))
	}
	t.Logf("that a worker dials the API is seen after %s", seen)
	if slices.Max(seen) > 2*time.Second {
		t.Errorf("that a worker dials the API is seen after %s", seen)
	}
}
