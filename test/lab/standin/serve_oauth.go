package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// ServeOAuth is an OAuth endpoint as far as a client on the network can tell: it is alive and says where to log in. Nobody can log in: the
// lab has no identity provider.
func ServeOAuth(ctx context.Context, certDir, host string) error {
	return serveTLS(ctx, oauthPort, certDir, oauthHandler(host))
}

func oauthHandler(host string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		issuer := "https://" + host
		err := json.NewEncoder(w).Encode(map[string]string{"issuer": issuer, "authorization_endpoint": issuer + "/oauth/authorize", "token_endpoint": issuer + "/oauth/token"})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("/oauth/authorize", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="openshift"`)
		http.Error(w, "no identity provider is configured", http.StatusUnauthorized)
	})
	return mux
}
