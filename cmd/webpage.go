package cmd

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
)

// isPage says that an answer is a web page, which no API server sends: a company's proxy does, or a load balancer, to refuse or to ask for a
// login. client-go would say "invalid character '<'", or print all of the page. One that says when to try again is left to client-go.
func isPage(answer *http.Response) bool {
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return err == nil && kind == "text/html" && answer.Header.Get("Retry-After") == ""
}

var title = regexp.MustCompile(`(?is)<(title|h1)[^>]*>\s*(.{1,100}?)\s*</`)

// notTheAPIServer closes the answer.
func (n naming) notTheAPIServer(answer *http.Response) error {
	begin, err := io.ReadAll(io.LimitReader(answer.Body, 4096))
	about := ""
	if found := title.FindSubmatch(begin); found != nil {
		about = fmt.Sprintf(", titled %q,", found[2])
	}
	return errors.Join(err, answer.Body.Close(), fmt.Errorf("a web page with HTTP status %d%s came instead of the API server's answer: see that %s in the kubeconfig is the API server, and what is "+
		"before it: a proxy (HTTPS_PROXY; NO_PROXY names hosts to reach without it), or a load balancer", answer.StatusCode, about, n.apiServer))
}
