package live_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/live"
)

// Who copied all of the address but its last slash is led to the page, and still nobody else is.
func TestAnAddressMayLackItsLastSlash(t *testing.T) {
	g := NewWithT(t)
	pages := live.Private("SECRET", []string{"127.0.0.1:80"}, http.NotFoundHandler())
	ask := func(path string) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		pages.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:80"+path, nil))
		return answer
	}
	g.Expect(ask("/SECRET").Header().Get("Location")).To(Equal("/SECRET/"))
	g.Expect(ask("/OTHER").Header().Get("Location")).To(BeEmpty())
	g.Expect(ask("/OTHER").Body.String()).To(HavePrefix("open the address that oooi ui has printed"))
}
