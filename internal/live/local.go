package live

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// Own is the viewer who owns a client: the API server judges what is read. Without the right to list Infras in all namespaces, the overview is
// of one.
func Own(api client.Reader, namespace string, now func() time.Time) func(*http.Request) (Viewer, error) {
	return func(*http.Request) (Viewer, error) {
		return Viewer{Name: "own", Sees: func(ctx context.Context, of types.NamespacedName) (string, Reader, error) {
			if of.Name != "" {
				return of.String(), Infra(api, of, now, nil), refused(api.Get(ctx, of, &v1alpha1.Infra{}))
			}
			one := []string{""}
			err := api.List(ctx, &v1alpha1.InfraList{}, client.Limit(1))
			if apierrors.IsForbidden(err) {
				one[0], err = namespace, api.List(ctx, &v1alpha1.InfraList{}, client.Limit(1), client.InNamespace(namespace))
			}
			return "", Overview(api, one, one), refused(err)
		}}, nil
	}
}

// Secret is a new first part of all paths, of 130 bits.
func Secret() string { return rand.Text() }

// Private answers only below a secret path, and only to who calls it by one of these hosts: other users of the machine do not know the secret,
// and a page of another site that has this address resolve to its own name (DNS rebinding) calls it by that.
func Private(secret string, hosts []string, next http.Handler) http.Handler {
	inner := http.StripPrefix("/"+secret, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known := false
		for _, host := range hosts {
			known = known || r.Host == host
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
		if !known || subtle.ConstantTimeCompare([]byte(first), []byte(secret)) != 1 {
			http.Error(w, "open the address that oooi ui has printed", http.StatusNotFound)
			return
		}
		if r.URL.Path == "/"+secret { // a terminal's selection leaves out the last slash
			http.Redirect(w, r, "/"+secret+"/", http.StatusTemporaryRedirect)
			return
		}
		inner.ServeHTTP(w, r)
	})
}
