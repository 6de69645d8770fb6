// Package bounded is the client of hosted clusters' APIs, which are not trusted. It limits, for each and for all together, how fast their
// data is read, how large it may be, how much is kept, and how long it may take. It does not check what its callers write.
package bounded

import (
	"errors"
	"fmt"
	"time"
)

// Limits of what we read, decode and keep of hosted clusters, which others administer. Each has limits of its own and a fair share of the
// limits for all, so that none slows the others down.
const (
	// readAtMost is the bytes a second from all hosted clusters together: some thousand Nodes, and less than a processor can parse. All
	// connections' bytes pass in the order in which they came, so that a connection with few bytes does not wait long.
	readAtMost = 16 << 20
	readAtOnce = 4 << 20
	// readOfOne is one hosted cluster's limit in that, for all connections to its server.
	readOfOne = readAtMost / 2
	chunk     = 16 << 10

	// ObjectsOfOne is the objects a second that are decoded of one hosted cluster, after objectsAtOnce, which suffices for several full
	// lists; a cluster of 5,000 Nodes changes some twenty a second. To decode and judge one takes up to 200 us of processor time.
	// objectsOfAll is the limit for all hosted clusters together.
	ObjectsOfOne  = 250
	objectsAtOnce = 40000
	objectsOfAll  = 16 * ObjectsOfOne
	allAtOnce     = 5 * objectsAtOnce

	// AnswersOfOne is the writes a second that one hosted cluster may cause on all connections to it, after answersAtOnce. Most answer
	// HTTP/2 frames, of which 17 octets cost us a system call. To read 8 MiB a second takes some 4,000, because net/http opens the window
	// by 4 KiB.
	AnswersOfOne  = 5000
	answersAtOnce = 4 * AnswersOfOne
	// mostFields is how many fields a list has: apiVersion, kind, metadata and items.
	mostFields = 4

	// largestObject is the largest that an API server stores (etcd takes 1.5 MiB), as JSON, which has six octets for one "<". Beyond
	// smallObject, one hosted cluster's objects are read one at a time, all hosted clusters' largeAtOnce, each for largeIn at most, so
	// that a server that stalls does not block the others.
	largestObject = 10 << 20
	smallObject   = 64 << 10
	largeAtOnce   = 4
	largeIn       = 30 * time.Second
	// MostParts is how many parts an object may have: each costs as much as a Go struct, up to 600 bytes for three of JSON.
	MostParts = 20000

	// mostPages and listedIn end a list, because pages may say for ever that there are more. They are large: the holder of a bootstrap
	// token can create tens of thousands of CSRs, and after a restart of ours all hosted clusters are listed at once.
	mostPages = 4000
	listedIn  = 10 * time.Minute

	// MostObjects are kept of one resource, MostBytes of one hosted cluster, which suffices for 5,000 dual-stack Nodes and as many
	// Services, and mostOfAll of all hosted clusters. Services, which any user can create, have half of MostBytes, and waiting CSRs, which
	// anybody with a bootstrap token can create, MostQueued; more of them do not end a visit.
	MostObjects = 5000
	MostBytes   = 8 << 20
	MostQueued  = MostBytes / 4
	mostOfAll   = 48 << 20
)

// ErrTooMuch matches the errors of all limits of what is kept, and of the size of an answer.
var ErrTooMuch = fmt.Errorf("there is more than is kept of a hosted cluster: %d objects of a kind, %d MiB", MostObjects, MostBytes>>20)

// tooMuch is an ErrTooMuch of another limit.
type tooMuch string

// Error implements error.
func (t tooMuch) Error() string { return string(t) }

// Is has it match ErrTooMuch.
func (tooMuch) Is(target error) bool { return target == ErrTooMuch }

var (
	errLarge   = tooMuch(fmt.Sprintf("an object is larger than %d MiB", largestObject>>20))
	errPages   = tooMuch(fmt.Sprintf("a list has more than %d pages", mostPages))
	errShare   = tooMuch(fmt.Sprintf("there is more than its share of the %d MiB that are kept of all hosted clusters", mostOfAll>>20))
	errEndless = fmt.Errorf("a list did not end in %s", listedIn)
)

var errSlow = fmt.Errorf("an object of more than %d KiB did not arrive in %s", smallObject>>10, largeIn)

var (
	// ErrNoKubernetes stands for a parser's error, which would quote the answer.
	ErrNoKubernetes = errors.New("the answer is none of a Kubernetes API")
	errHasty        = errors.New("watches are ended at once")
)
