package bounded

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/watch"
)

// A Go struct may take a hundred times the three octets of its JSON.
func TestOfAnObjectWithTooManyPartsOnlyTheNameIsTakenIn(t *testing.T) {
	g, a := NewWithT(t), &API{}
	object := fmt.Appendf(nil, `{"metadata":{"namespace":"a","name":"b","resourceVersion":"7"},"spec":{"ports":[{}%s]}}`, strings.Repeat(",{}", MostParts))
	fewer := []byte(strings.Replace(string(object), ",{}", "", 10))
	g.Expect(a.bounded(fewer)).To(Equal(fewer))
	g.Expect(a.HasCut()).To(BeFalse())
	g.Expect(a.bounded(object)).To(MatchJSON(`{"metadata":{"namespace":"a","name":"b","resourceVersion":"7"}}`))
	g.Expect(a.HasCut()).To(BeTrue())
}

func TestAListIsReadAsItComes(t *testing.T) {
	for text, want := range map[string]struct {
		items    int
		says     listMeta
		problem  error
		anyError bool
	}{
		`{"kind":"List","metadata":{"resourceVersion":"5","continue":"x"},"items":[{"a":1},{"b":[2]}]}`: {items: 2, says: listMeta{"5", "x"}},
		`{"items":[{}],"more":{"deep":[1,{}]},"metadata":{"resourceVersion":"5"}}`:                      {items: 1, says: listMeta{"5", ""}},
		`{"metadata":{},"items":null}`: {},
		`{}`:                           {},
		`[]`:                           {problem: ErrNoKubernetes},
		`7`:                            {problem: ErrNoKubernetes},
		`{"items":{}}`:                 {problem: ErrNoKubernetes},
		`no JSON`:                      {anyError: true},
		`{"items":[{}`:                 {items: 1, anyError: true},
		``:                             {anyError: true},
	} {
		for name, body := range map[string]io.Reader{"at once": strings.NewReader(text), "by octets": iotest.OneByteReader(strings.NewReader(text))} {
			t.Run(text+" "+name, func(t *testing.T) {
				g, items := NewWithT(t), 0
				says, err := eachOf(&meter{ctx: t.Context(), body: io.NopCloser(body), large: make(chan struct{}, 1), ofAll: make(chan struct{}, 1)}, func([]byte) error { items++; return nil })
				switch {
				case want.anyError:
					g.Expect(err).To(HaveOccurred())
				case want.problem != nil:
					g.Expect(err).To(MatchError(want.problem))
				default:
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(says).To(Equal(want.says))
				}
				g.Expect(items).To(Equal(want.items))
			})
		}
	}
}

// Otherwise a page could repeat fields for ever.
func TestAListWithMoreFieldsThanAnyIsLeft(t *testing.T) {
	g := NewWithT(t)
	for _, field := range []string{`"a":1`, `"metadata":{}`, `"items":[]`} {
		_, err := things.List(t.Context(), hostedAPI(func(*http.Request) string {
			return "{" + strings.Repeat(field+",", mostFields) + field + "}"
		}), func(watch.EventType, []byte) error { return nil })
		g.Expect(err).To(MatchError(ErrNoKubernetes), field)
	}
}

func TestAListThatDoesNotEndIsLeft(t *testing.T) {
	for name, page := range map[string]string{
		"empty pages":     `{"metadata":{"continue":"x"},"items":[]}`,
		"the same object": `{"metadata":{"continue":"x"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"a"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			g, asked := NewWithT(t), 0
			a := hostedAPI(func(*http.Request) string { asked++; return page })
			defer a.Close()
			s := things.cache(a)
			_, err := things.List(t.Context(), a, s.put)
			g.Expect(err).To(And(MatchError(ErrTooMuch), MatchError(errPages)))
			g.Expect(asked).To(Equal(mostPages))
		})
	}
}

func TestAListThatTakesItsTimeIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, began := NewWithT(t), time.Now()
		a := hostedAPI(func(*http.Request) string {
			time.Sleep(time.Second)
			return `{"metadata":{"continue":"x"},"items":[]}`
		})
		defer a.Close()
		_, err := things.List(t.Context(), a, things.cache(a).put)
		g.Expect(err).To(MatchError(errEndless))
		g.Expect(time.Since(began)).To(BeNumerically("~", listedIn, time.Second))
	})
}
