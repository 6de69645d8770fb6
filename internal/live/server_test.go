package live_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/live"
	"github.com/cldmnky/oooi/internal/picture"
)

// ofOne is the most that one viewer has at a time.
const ofOne = 16

// site serves a page over HTTP/2 that is another at each reading, to a browser that takes 64 KiB of a page before it reads it.
func site(t *testing.T, says string, writing time.Duration) (get func(path string) *http.Response) {
	t.Helper()
	readings := 0
	return siteOf(t, writing, func(context.Context) (live.Shown, error) {
		readings++
		d := picture.Overview{Infras: []picture.Line{{Name: "reading-" + strconv.Itoa(readings), Says: says}}}.Document()
		return func(string) picture.Document { return d }, nil
	})
}

func siteOf(t *testing.T, writing time.Duration, read live.Reader) (get func(path string) *http.Response) {
	t.Helper()
	pages := live.New(t.Context(), func(*http.Request) (live.Viewer, error) {
		return live.Viewer{Name: "one", Sees: func(context.Context, types.NamespacedName) (string, live.Reader, error) { return "", read, nil }}, nil
	})
	pages.SetWriting(writing)
	server := httptest.NewUnstartedServer(pages)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	browser := server.Client()
	browser.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
	return func(path string) *http.Response {
		t.Helper()
		g := NewWithT(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		t.Cleanup(cancel)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := browser.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = response.Body.Close() })
		g.Expect(response.Proto).To(Equal("HTTP/2.0"))
		return response
	}
}

var large = strings.Repeat("x", 1<<20)

func TestPagesThatNobodyTakesAreBounded(t *testing.T) {
	g, get := NewWithT(t), site(t, large, time.Hour)
	var open []*http.Response
	for range ofOne {
		open = append(open, get("/"))
		g.Expect(open[len(open)-1].StatusCode).To(Equal(http.StatusOK))
	}
	refused := get("/")
	text, err := io.ReadAll(refused.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(refused.StatusCode).To(Equal(http.StatusServiceUnavailable))
	g.Expect(string(text)).To(Equal("too many pages are asked for at a time; try again in a few seconds\n"))
	whole, err := io.ReadAll(open[0].Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(whole)).To(BeNumerically(">", len(large)))
	g.Eventually(func() int { return get("/").StatusCode }).Should(Equal(http.StatusOK), "its place is another's")
}

// A browser paints the top of a page while the rest is read.
func TestAPageBeginsBeforeItIsRead(t *testing.T) {
	for says, err := range map[string]error{"<td>reading</td>": nil, "<span class=\"fail\">not read</span> the API server is away": errors.New("the API server is away")} {
		t.Run(says, func(t *testing.T) {
			g, read := NewWithT(t), make(chan struct{})
			get := siteOf(t, time.Second, func(context.Context) (live.Shown, error) {
				<-read
				d := picture.Overview{Infras: []picture.Line{{CIDR: "reading"}}}.Document()
				return func(string) picture.Document { return d }, err
			})
			page := get("/")
			body := bufio.NewReader(page.Body)
			for line := ""; line != "<h1>Infras and bridges</h1>\n"; {
				var err error
				line, err = body.ReadString('\n')
				g.Expect(err).NotTo(HaveOccurred())
			}
			time.AfterFunc(1500*time.Millisecond, func() { close(read) }) // reading may take longer than a browser may take to take what is there
			rest, err := io.ReadAll(body)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(rest)).To(And(ContainSubstring(says), HaveSuffix("</html>\n")))
		})
	}
}

func TestAPageThatNobodyTakesEnds(t *testing.T) {
	g, get := NewWithT(t), site(t, large, 300*time.Millisecond)
	for range ofOne {
		get("/")
	}
	g.Eventually(func() int { return get("/").StatusCode }, time.Minute).Should(Equal(http.StatusOK))
}

// The next reading is a second after the first, which is longer than a browser may take to take an event.
func TestAQuietStreamGoesOn(t *testing.T) {
	g, get := NewWithT(t), site(t, "", 300*time.Millisecond)
	stream := bufio.NewReader(get("/events").Body)
	g.Expect(next(stream, "reading-1")).NotTo(BeEmpty())
	g.Expect(next(stream, "reading-2")).NotTo(BeEmpty())
	g.Expect(next(stream, "reading-3")).NotTo(BeEmpty())
}
