// Package bounded is the client of hosted clusters' APIs. Nobody vouches for what these send: how fast it is read, how large it may be, how
// much of it is kept and how long it may take is bounded for each of them and for all together. It writes what it is told to.
package bounded

import (
	"errors"
	"fmt"
	"time"
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

	// ObjectsOfOne are taken in a second of one hosted cluster, after objectsAtOnce, which some lists of all that is kept have; a cluster of
	// 5,000 Nodes changes some twenty a second. To read and judge one costs up to 200 us of the processor. objectsOfAll are taken in of all.
	ObjectsOfOne  = 250
	objectsAtOnce = 40000
	objectsOfAll  = 16 * ObjectsOfOne
	allAtOnce     = 5 * objectsAtOnce

	// AnswersOfOne are the writes of a second that one hosted cluster may cause on all connections to it, after answersAtOnce: most answer HTTP/2's frames, of
	// which 17 octets cost a system call each. To read 8 MiB a second takes some 4,000, for net/http opens the window by 4 KiB.
	AnswersOfOne  = 5000
	answersAtOnce = 4 * AnswersOfOne
	// mostFields of a list: it has apiVersion, kind, metadata and items.
	mostFields = 4

	// largestObject is what an API server stores (etcd takes 1.5 MiB) as JSON, which has six octets for one "<". Of objects beyond
	// smallObject one connection takes in one at a time, all of them together largeAtOnce, each for largeIn at most: who does not go on
	// keeps nobody else waiting.
	largestObject = 10 << 20
	smallObject   = 64 << 10
	largeAtOnce   = 4
	largeIn       = 30 * time.Second
	// MostParts of an object: each costs as much as a Go struct, up to 600 bytes for three of JSON.
	MostParts = 20000

	// mostPages has a list, and listedIn it ends: pages may say for ever that there are more. The holder of a bootstrap token can make
	// tens of thousands of CSRs, and after a restart of ours all hosted clusters are listed at once.
	mostPages = 4000
	listedIn  = 10 * time.Minute

	// MostObjects are kept of one resource, MostBytes of one hosted cluster, with room for 5,000 Nodes and as many Services of both address
	// families, and mostOfAll of all of them. Services, which any user makes, have half of it, and CSRs that wait, which whoever has a
	// bootstrap token makes, MostQueued: neither ends a visit.
	MostObjects = 5000
	MostBytes   = 8 << 20
	MostQueued  = MostBytes / 4
	mostOfAll   = 48 << 20
)

// ErrTooMuch is what each bound of what is kept, or of how much one answer may be, is.
var ErrTooMuch = fmt.Errorf("there is more than is kept of a hosted cluster: %d objects of a kind, %d MiB", MostObjects, MostBytes>>20)

// tooMuch is an ErrTooMuch that another bound makes one.
type tooMuch string

// Error implements error.
func (t tooMuch) Error() string { return string(t) }

// Is has whoever asks for ErrTooMuch find it.
func (tooMuch) Is(target error) bool { return target == ErrTooMuch }

var (
	errLarge   = tooMuch(fmt.Sprintf("an object is larger than %d MiB", largestObject>>20))
	errPages   = tooMuch(fmt.Sprintf("a list has more than %d pages", mostPages))
	errShare   = tooMuch(fmt.Sprintf("there is more than its share of the %d MiB that are kept of all hosted clusters", mostOfAll>>20))
	errEndless = fmt.Errorf("a list did not end in %s", listedIn)
)

var errSlow = fmt.Errorf("an object of more than %d KiB did not arrive in %s", smallObject>>10, largeIn)

var (
	// ErrNoKubernetes hides what a parser would quote of an answer.
	ErrNoKubernetes = errors.New("the answer is none of a Kubernetes API")
	errHasty        = errors.New("watches are ended at once")
)
