package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/cldmnky/oooi/internal/parts"
)

// What hosted clusters may have us read, take in and keep. Their administrators are others: what one of them serves is bounded for
// itself, and shared fairly where it is of all, so that it costs no other hosted cluster anything.
const (
	// readAtMost are the bytes a second that come from all hosted clusters together: some thousand Nodes, and less than a processor can
	// parse. Bytes of all connections are let through in the order in which they came, so that who has few waits for few.
	readAtMost = 16 << 20
	readAtOnce = 4 << 20
	// readOfOne is of that what one hosted cluster may have at most, however many connections there are to its server.
	readOfOne = readAtMost / 2
	chunk     = 16 << 10

	// objectsOfOne are taken in a second of one hosted cluster, after objectsAtOnce, which some lists of all that is kept have; a cluster of
	// 5,000 Nodes changes some twenty a second. To read and judge one costs up to 200 us of the processor. objectsOfAll are taken in of all.
	objectsOfOne  = 250
	objectsAtOnce = 40000
	objectsOfAll  = 16 * objectsOfOne
	allAtOnce     = 5 * objectsAtOnce

	// largestObject is what an API server stores (etcd takes 1.5 MiB) as JSON, which has six octets for one "<". Of objects beyond
	// smallObject one connection takes in one at a time, all of them together largeAtOnce, each for largeIn at most: who does not go on
	// keeps nobody else waiting.
	largestObject = 10 << 20
	smallObject   = 64 << 10
	largeAtOnce   = 4
	largeIn       = 30 * time.Second
	// mostParts of an object: each costs as much as a Go struct, up to 600 bytes for three of JSON.
	mostParts = 20000

	// mostPages has a list, and listedIn it ends: pages may say for ever that there are more. The holder of a bootstrap token can make
	// tens of thousands of CSRs, and after a restart of ours all hosted clusters are listed at once.
	mostPages = 4000
	listedIn  = 10 * time.Minute

	// mostObjects are kept of one resource, mostBytes of one hosted cluster, with room for 5,000 Nodes and as many Services of both address
	// families, and mostOfAll of all of them. Services, which any user makes, have half of it, and CSRs that wait, which whoever has a
	// bootstrap token makes, mostQueued: neither ends a visit.
	mostObjects = 5000
	mostBytes   = 8 << 20
	mostQueued  = mostBytes / 4
	mostOfAll   = 48 << 20
)

var errTooMuch = fmt.Errorf("there is more than is kept of a hosted cluster: %d objects of a kind, %d MiB", mostObjects, mostBytes>>20)

// tooMuch is an errTooMuch that another bound makes one.
type tooMuch string

// Error implements error.
func (t tooMuch) Error() string { return string(t) }

// Is has whoever asks for errTooMuch find it.
func (tooMuch) Is(target error) bool { return target == errTooMuch }

var (
	errLarge   = tooMuch(fmt.Sprintf("an object is larger than %d MiB", largestObject>>20))
	errPages   = tooMuch(fmt.Sprintf("a list has more than %d pages", mostPages))
	errShare   = tooMuch(fmt.Sprintf("there is more than its share of the %d MiB that are kept of all hosted clusters", mostOfAll>>20))
	errEndless = fmt.Errorf("a list did not end in %s", listedIn)
)

// fromAll is the share in reading of all connections of the process.
var fromAll = rate.NewLimiter(readAtMost, readAtOnce)

// rationed is a connection that is read no faster than the shares of its hosted cluster and of all allow.
type rationed struct {
	net.Conn
	of *share
}

// Read implements net.Conn.
func (c rationed) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), chunk)])
	c.of.read.Add(float64(n))
	now := time.Now()
	time.Sleep(max(c.of.bytes.ReserveN(now, n).DelayFrom(now), fromAll.ReserveN(now, n).DelayFrom(now)))
	return n, err
}

// largeOfAll are the turns of all connections of the process.
var largeOfAll = make(chan struct{}, largeAtOnce)

var errSlow = fmt.Errorf("an object of more than %d KiB did not arrive in %s", smallObject>>10, largeIn)

// meter reads objects one after the other, none beyond its bound.
type meter struct {
	ctx   context.Context
	body  io.ReadCloser
	large chan struct{} // whose is the turn on this connection to take in a large one
	ofAll chan struct{} // and of all connections
	size  int           // of the object, so far
	turn  *time.Timer   // ends it
	slow  atomic.Bool
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	if m.size >= largestObject {
		return 0, errLarge
	}
	if m.size >= smallObject && m.turn == nil {
		if err := m.takesTurn(); err != nil {
			return 0, err
		}
	}
	n, err := m.body.Read(p[:min(len(p), chunk)])
	if m.size += n; err != nil && m.slow.Load() {
		err = errSlow
	}
	return n, err
}

func (m *meter) takesTurn() error {
	for i, turns := range []chan struct{}{m.large, m.ofAll} {
		select {
		case turns <- struct{}{}:
		case <-m.ctx.Done():
			if i > 0 {
				<-m.large
			}
			return m.ctx.Err()
		}
	}
	m.turn = time.AfterFunc(largeIn, func() {
		m.slow.Store(true)
		_ = m.body.Close() // whoever reads it hears so
	})
	return nil
}

// next object begins.
func (m *meter) next() { m.size = 0 }

// done lets the next large object in.
func (m *meter) done() {
	if m.turn != nil {
		m.turn.Stop()
		m.turn = nil
		<-m.ofAll
		<-m.large
	}
}

func (m *meter) close() {
	m.done()
	_ = m.body.Close() // there is nothing more to say
}

// bounded is an object, or but its name if it has more parts than are taken in.
func (a *api) bounded(object []byte) []byte {
	if parts.Of(object) <= mostParts {
		return object
	}
	a.cut.Store(time.Now().Unix())
	var o identified
	if json.Unmarshal(object, &o) != nil {
		return nil
	}
	name, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	return name
}

// eachOf hands over the items of a list one by one, as they come, and says what the list says of itself.
func eachOf(m *meter, take func(object []byte) error) (about listMeta, err error) {
	d := json.NewDecoder(m)
	if err := delimiter(d, '{'); err != nil {
		return about, err
	}
	for d.More() {
		m.next()
		key, err := d.Token()
		if err != nil {
			return about, err
		}
		switch key {
		case "metadata":
			err = d.Decode(&about)
		case "items":
			err = items(d, m, take)
		default:
			err = d.Decode(&json.RawMessage{})
		}
		if err != nil {
			return about, err
		}
	}
	return about, delimiter(d, '}')
}

// listMeta is of metav1.ListMeta what is read.
type listMeta struct {
	ResourceVersion string `json:"resourceVersion"`
	Continue        string `json:"continue"`
}

func items(d *json.Decoder, m *meter, take func(object []byte) error) error {
	begin, err := d.Token()
	if begin == nil || err != nil { // null are none
		return err
	}
	if begin != json.Delim('[') {
		return errNoKubernetes
	}
	for d.More() {
		m.next()
		var object json.RawMessage
		if err := d.Decode(&object); err != nil {
			return err
		}
		if err := take(object); err != nil {
			return err
		}
	}
	return delimiter(d, ']')
}

func delimiter(d *json.Decoder, want json.Delim) error {
	token, err := d.Token()
	if err == nil && token != want {
		return errNoKubernetes
	}
	return err
}

// isSyntax says whether a server said what no API server says.
func isSyntax(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &kind)
}

// room is what is kept of all hosted clusters: as JSON, and of addresses more.
type room struct {
	mu  sync.Mutex
	all int
	of  map[*share]int
}

var kept = &room{of: map[*share]int{}}

// take more for a hosted cluster, or less. What all may keep is refused to those that have more than their share of it.
func (r *room) take(a *api, more int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(a, more)
	if more <= 0 {
		return nil
	}
	switch has := r.of[a.to]; {
	case has > mostBytes:
		return errTooMuch
	case r.all > mostOfAll && has > mostOfAll/len(r.of):
		return errShare
	}
	return nil
}

func (r *room) add(a *api, more int) {
	a.kept += more
	r.all += more
	if r.of[a.to] += more; r.of[a.to] == 0 {
		delete(r.of, a.to)
	}
}

// leave forgets what is kept for a connection.
func (r *room) leave(a *api) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(a, -a.kept)
}
