// Package bounded is the client of hosted clusters' APIs, which are not trusted. For each and for all together it limits how fast their
// data is read, how large it may be, how much is kept, and how long it may take. It does not judge what its callers write.
package bounded

import (
	"errors"
	"fmt"
	"time"
)

// Limits of what we read, decode and keep of hosted clusters, which others administer. Each has limits of its own, and a fair share of
// the limits for all, so that none costs the others anything.
const (
	// readAtMost are the bytes a second that come from all hosted clusters together: some thousand Nodes, and less than a processor can
	// parse. Bytes of all connections are let through in the order in which they came, so that who has few waits for few.
	readAtMost = 16 << 20
	readAtOnce = 4 << 20
	// readOfOne is of that what one hosted cluster may have at most, however many connections there are to its server.
	readOfOne = readAtMost / 2
	chunk     = 16 << 10

	// ObjectsOfOne are the objects that are decoded in a second of one hosted cluster, after objectsAtOnce, which is some lists of all
	// that is kept; a cluster of 5,000 Nodes changes some twenty a second. To read and judge one takes up to 200 us of processor time.
	// objectsOfAll is the limit for all hosted clusters together.
	ObjectsOfOne  = 250
	objectsAtOnce = 40000
	objectsOfAll  = 16 * ObjectsOfOne
	allAtOnce     = 5 * objectsAtOnce

	// AnswersOfOne are the writes in a second that one hosted cluster may cause on all connections to it, after answersAtOnce. Most
	// answer HTTP/2 frames, of which 17 octets cost us a system call. To read 8 MiB a second takes some 4,000, because net/http opens
	// the window by 4 KiB.
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

	// MostObjects are kept of one resource, MostBytes of one hosted cluster, with room for 5,000 Nodes and as many Services of both
	// address families, and mostOfAll of all hosted clusters. Services, which any user can create, have half of MostBytes, and waiting
	// CSRs, which anybody with a bootstrap token can create, MostQueued; more of them do not end a visit.
	MostObjects = 5000
	MostBytes   = 8 << 20
	MostQueued  = MostBytes / 4
	mostOfAll   = 48 << 20
)

// ErrTooMuch is matched by the errors of all limits of what is kept, and of how large an answer may be.
var ErrTooMuch = fmt.Errorf("there is more than is kept of a hosted cluster: %d objects of a kind, %d MiB", MostObjects, MostBytes>>20)

// tooMuch is an ErrTooMuch that another bound makes one.
type tooMuch string

// Error implements error.
func (t tooMuch) Error() string { return string(t) }

// Is makes it match ErrTooMuch.
func (tooMuch) Is(target error) bool { return target == ErrTooMuch }

var (
	errLarge   = tooMuch(fmt.Sprintf("an object is larger than %d MiB", largestObject>>20))
	errPages   = tooMuch(fmt.Sprintf("a list has more than %d pages", mostPages))
	errShare   = tooMuch(fmt.Sprintf("there is more than its share of the %d MiB that are kept of all hosted clusters", mostOfAll>>20))
	errEndless = fmt.Errorf("a list did not end in %s", listedIn)
)

var errSlow = fmt.Errorf("an object of more than %d KiB did not arrive in %s", smallObject>>10, largeIn)

var (
	// ErrNoKubernetes replaces a parser's error, which would quote the answer.
	ErrNoKubernetes = errors.New("the answer is none of a Kubernetes API")
	errHasty        = errors.New("watches are ended at once")
)
