package controller

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/cldmnky/oooi/internal/share"
)

// Authorized allows a scrape only with a token that the API server authenticates and authorizes to get the path. (controller-runtime's own
// filter links 26 more modules.)
func Authorized(config *rest.Config, client *http.Client) (server.Filter, error) {
	api, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	asks := askers{share.New[string](mostAskers, 1)}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			code, err := asks.judge(api, r)
			if err != nil {
				log.Error(err, "judging a scrape")
			}
			if code != http.StatusOK {
				http.Error(w, http.StatusText(code), code)
				return
			}
			next.ServeHTTP(w, r)
		}), nil
	}, nil
}

const (
	// longestToken is the longest token that is reviewed, in octets; a service account's has about 1,200.
	longestToken = 16 << 10
	// refusedFor is how long after a refusal no other request from that address is judged.
	refusedFor = time.Second
	// mostAskers is how many addresses at a time may have a request under review or recently refused.
	mostAskers = 1000
)

// askers allow one review at a time for each address: any pod may ask with a token that it makes up, each request costs a review by the API
// server, and nothing else limits those.
type askers struct{ *share.Places[string] }

func (a askers) judge(api kubernetes.Interface, r *http.Request) (code int, err error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || len(token) > longestToken {
		return http.StatusUnauthorized, nil
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	if !a.Enter(address) {
		return http.StatusTooManyRequests, nil
	}
	if code, err = judge(r.Context(), api, r, token); code == http.StatusOK {
		a.Leave(address)
	} else {
		time.AfterFunc(refusedFor, func() { a.Leave(address) })
	}
	return code, err
}

func judge(ctx context.Context, api kubernetes.Interface, r *http.Request, token string) (code int, err error) {
	who, err := api.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return http.StatusInternalServerError, err
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	may, err := api.AuthorizationV1().SubjectAccessReviews().Create(ctx, access(who.Status.User, r), metav1.CreateOptions{})
	if err != nil {
		return http.StatusInternalServerError, err
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func access(user authenticationv1.UserInfo, r *http.Request) *authorizationv1.SubjectAccessReview {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: "get"},
	}}
}
