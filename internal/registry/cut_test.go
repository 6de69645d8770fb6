package registry_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// uploads are the requests of an upload, in the order in which they are sent first.
var uploads = []struct {
	name, method, path string
	body               bool
}{
	{"whether a layer is there", http.MethodHead, "/blobs/", false},
	{"a layer begins", http.MethodPost, "/uploads/", false},
	{"a layer", http.MethodPatch, "/uploads/", true},
	{"a layer ends", http.MethodPut, "/uploads/", false},
	{"the manifest with its tag", http.MethodPut, "/manifests/", true},
}

// cuts are how far a registry gets with a request before it cuts the connection.
var cuts = []struct {
	name     string
	ofBodies bool
	does     func(s *server, r *http.Request)
}{
	{"before it", false, func(*server, *http.Request) {}},
	{"in the middle", true, func(_ *server, r *http.Request) { _, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2) }},
	{"after it, without an answer", false, func(s *server, r *http.Request) { s.images.ServeHTTP(httptest.NewRecorder(), r) }},
}

// eachCut runs a test for each request of an upload, and each point at which that may be cut off. The target goes on to cut until the test
// mends it; cut receives when it does so.
func eachCut(t *testing.T, do func(t *testing.T, c copies, cut <-chan struct{}, mend func())) {
	from := serves(t)
	image := from.layered("layers", "4.20.4", 3)
	for _, request := range uploads {
		for _, point := range cuts {
			if point.ofBodies && !request.body {
				continue
			}
			t.Run(request.name+", "+point.name, func(t *testing.T) {
				c := copiesOf(t, from, image)
				cut := make(chan struct{}, 1)
				c.to.answers(func(_ http.ResponseWriter, r *http.Request) bool {
					if r.Method != request.method || !strings.Contains(r.URL.Path, request.path) {
						return false
					}
					point.does(c.to, r)
					select {
					case cut <- struct{}{}:
					default:
					}
					panic(http.ErrAbortHandler)
				})
				do(t, c, cut, func() { c.to.answers(nil) })
			})
		}
	}
}

func TestAnUploadThatIsCutOffIsTriedAgain(t *testing.T) {
	eachCut(t, func(_ *testing.T, c copies, _ <-chan struct{}, mend func()) {
		host := strings.TrimPrefix(c.to.URL, "https://")
		c.hears(c.want, failed(bridge.CacheFailed, c.from.repository("layers")+":4.20.4 to "+c.to.repository("images/layers-4.20.4")+":4.20.4: "+host+": the connection was cut"))
		c.there() // if anybody sees it, it is whole
		mend()
		c.isCopied()
	})
}

// By HTTP/2 one request may end while the connection goes on.
func TestAnUploadByHTTP2ThatIsCutOffIsTriedAgain(t *testing.T) {
	for name, cut := range map[string]func(s *server){
		"the request":    func(*server) { panic(http.ErrAbortHandler) },
		"the connection": func(s *server) { s.CloseClientConnections() },
	} {
		t.Run(name, func(t *testing.T) {
			from := serves(t)
			c := copiesOf(t, from, from.layered("layers", "4.20.4", 1)) // the registry in memory takes one layer after the other, and they share a connection
			c.to = servesBy(t, true)
			c.want.Cache.Push, c.want.Cache.Pull = c.to.place("images/layers"), c.to.place("images/layers")
			c.Transport = c.to.transport().Clone()
			c.to.answers(func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPatch {
					c.Expect(r.ProtoMajor).To(Equal(2))
					_, _ = io.CopyN(io.Discard, r.Body, octets/2)
					cut(c.to)
				}
				return r.Method == http.MethodPatch
			})
			c.hears(c.want, failed(bridge.CacheFailed, strings.TrimPrefix(c.to.URL, "https://")+": the connection was cut"))
			c.to.answers(nil)
			c.isCopied()
		})
	}
}

// Of what a manager has begun, the next one makes the same copy.
func TestACopyComesToTheSameEndWhereverItsManagerDies(t *testing.T) {
	eachCut(t, func(t *testing.T, c copies, cut <-chan struct{}, mend func()) {
		c.Follow(by, &c.want)
		next(c, cut)
		c.ends()
		c.there()
		mend()
		transport, token := c.Transport, c.Token
		c.client = asks(t, transport.Clone())
		c.Token = token
		c.isCopied()
	})
}

// A reset is one of the ways in which Go hears of a cut: a message that changed with them would be written again and again.
func TestACopyThatIsCutOffIsTriedLessAndLess(t *testing.T) {
	c := copiesTo(t)
	uploads := c.to.counts(http.MethodPatch, "/uploads/", func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		c.Expect(err).NotTo(HaveOccurred())
		tcp := conn.(*tls.Conn).NetConn().(*net.TCPConn) // TLS would say goodbye first
		c.Expect(tcp.SetLinger(0)).To(Succeed())
		c.Expect(tcp.Close()).To(Succeed())
		return true
	})
	c.Follow(by, &c.want)
	for tries := range 4 {
		c.Expect(next(c, c.tried)).To(Equal(tries), "the pause grows with each")
	}
	c.Expect(uploads.Load()).To(BeNumerically("==", 4), "what is there is not sent again")
	c.hears(c.want, failed(bridge.CacheFailed, ": the connection was cut"))
	c.to.answers(nil)
	c.isCopied()
}
