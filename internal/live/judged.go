package live

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	dpfapi "github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/share"
)

// Reviews let in whom the API server knows by a token, and show him what it allows him to read. What is read is read with the rights of API.
type Reviews struct {
	api     client.Client
	reviews kubernetes.Interface
	now     func() time.Time
	// asking are reviews of tokens, a few at a time for each address; one that was refused counts for a moment longer. Behind a proxy all
	// viewers have its address.
	asking *share.Places[string]
	users  *remembered[[sha256.Size]byte, authenticationv1.UserInfo]
	rights *remembered[string, bool]
	parts  *parts
}

const (
	// longestToken is the longest token that is reviewed, in octets; a service account's has about 1,200.
	longestToken = 16 << 10
	mostAsking   = 1000
	ofOneAddress = 4
	refusedFor   = time.Second
	// believed is for how long the API server is not asked the same again.
	believed = 30 * time.Second
)

// NewReviews reads without a cache: a cache of all leases would take more memory than the manager has.
func NewReviews(api client.Client, reviews kubernetes.Interface, now func() time.Time) *Reviews {
	return &Reviews{api, reviews, now, share.New[string](mostAsking, ofOneAddress), remember[[sha256.Size]byte, authenticationv1.UserInfo](), remember[string, bool](), newParts()}
}

// Who asks, by the bearer token of the request, or the one that a proxy adds that has signed somebody in.
func (v *Reviews) Who(r *http.Request) (Viewer, error) {
	token, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !is {
		token = r.Header.Get("X-Forwarded-Access-Token")
	}
	if token == "" || len(token) > longestToken {
		return Viewer{}, Refusal{http.StatusUnauthorized, "send a bearer token of the cluster; docs/STATUS.md says how a browser does, and oooi ui needs none"}
	}
	user, err := v.user(r, token)
	if err != nil {
		return Viewer{}, err
	}
	return Viewer{Name: user.Username, Sees: func(ctx context.Context, of types.NamespacedName) (string, Reader, error) {
		if of.Name == "" {
			return v.overview(ctx, user)
		}
		return v.infra(ctx, user, of)
	}}, nil
}

func (v *Reviews) user(r *http.Request, token string) (authenticationv1.UserInfo, error) {
	known := sha256.Sum256([]byte(token))
	if user, is := v.users.get(known); is {
		return user, nil
	}
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	if !v.asking.Enter(address) {
		return authenticationv1.UserInfo{}, Refusal{http.StatusTooManyRequests, "too many requests with new tokens; try again in a second"}
	}
	review, err := v.reviews.AuthenticationV1().TokenReviews().Create(r.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated {
		time.AfterFunc(refusedFor, func() { v.asking.Leave(address) })
	} else {
		v.asking.Leave(address)
	}
	switch {
	case err != nil:
		return authenticationv1.UserInfo{}, fmt.Errorf("reviewing the token: %w", err)
	case !review.Status.Authenticated:
		return authenticationv1.UserInfo{}, Refusal{http.StatusUnauthorized, "the API server does not know this token"}
	}
	v.users.set(known, review.Status.User)
	return review.Status.User, nil
}

// may says whether a user has a right; on one object if a name is given.
func (v *Reviews) may(ctx context.Context, user authenticationv1.UserInfo, r right, name string) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	spec := authorizationv1.SubjectAccessReviewSpec{User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: r.resource, Namespace: r.namespace, Name: name}}
	key := spec.String()
	if is, known := v.rights.get(key); known {
		return is, nil
	}
	review, err := v.reviews.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking whether %s may %s %s: %w", user.Username, r.verb, r.resource, err)
	}
	v.rights.set(key, review.Status.Allowed)
	return review.Status.Allowed, nil
}

// granted are those of the rights that a user has.
func (v *Reviews) granted(ctx context.Context, user authenticationv1.UserInfo, all []right) (map[right]bool, error) {
	granted := map[right]bool{}
	for _, r := range all {
		is, err := v.may(ctx, user, r, "")
		if err != nil {
			return nil, err
		}
		granted[r] = is
	}
	return granted, nil
}

func (v *Reviews) infra(ctx context.Context, user authenticationv1.UserInfo, of types.NamespacedName) (string, Reader, error) {
	get := right{"get", oooi, "infras", of.Namespace}
	if is, err := v.may(ctx, user, get, of.Name); err != nil {
		return "", nil, err
	} else if !is { // whether there is one is not told
		return "", nil, Refusal{http.StatusForbidden, fmt.Sprintf("you may not get infras.%s %s in namespace %s", oooi, of.Name, of.Namespace)}
	}
	var infra v1alpha1.Infra
	if err := infraOf(ctx, v.api, of, &infra); err != nil {
		return "", nil, refused(err)
	}
	granted, err := v.granted(ctx, user, ofInfra(&infra))
	if err != nil {
		return "", nil, err
	}
	granted[get] = true
	may := guard{v.api, granted}
	return of.String() + "\n" + keyOf(granted), Infra(may, of, v.now, v.parts.of(of, may)), nil
}

func (v *Reviews) overview(ctx context.Context, user authenticationv1.UserInfo) (string, Reader, error) {
	infras, err := v.namespaces(ctx, user, infrasIn)
	if err != nil {
		return "", nil, err
	}
	if len(infras) == 0 {
		return "", nil, Refusal{http.StatusForbidden, fmt.Sprintf("you may not list infras.%s in any namespace that has one", oooi)}
	}
	bridges, err := v.namespaces(ctx, user, bridgesOf)
	if err != nil {
		return "", nil, err
	}
	templates, err := v.dpfNamespace(ctx)
	if err != nil {
		return "", nil, err
	}
	granted, err := v.granted(ctx, user, ofOverview(bridges, templates))
	if err != nil {
		return "", nil, err
	}
	for _, namespace := range infras {
		granted[infrasIn(namespace)] = true
	}
	for _, namespace := range bridges {
		granted[bridgesOf(namespace)] = true
	}
	return "\n" + keyOf(granted), Overview(guard{v.api, granted}, infras, bridges), nil
}

// dpfNamespace is where DPF's one configuration is.
func (v *Reviews) dpfNamespace(ctx context.Context) (string, error) {
	configs := &dpfapi.DPFOperatorConfigList{}
	err := v.api.List(ctx, configs)
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsForbidden(err) { // an operator without bridges may not
		return "", err
	}
	if one, _ := dpfapi.Only(configs.Items); one != nil {
		return one.Namespace, nil
	}
	return "", nil
}

// namespaces in which a user may list: "" if in all, else those that have an Infra.
func (v *Reviews) namespaces(ctx context.Context, user authenticationv1.UserInfo, list func(string) right) (all []string, err error) {
	if is, err := v.may(ctx, user, list(""), ""); err != nil || is {
		return []string{""}, err
	}
	infras := &metav1.PartialObjectMetadataList{}
	infras.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("InfraList"))
	if err := v.api.List(ctx, infras); err != nil {
		return nil, err
	}
	for _, i := range infras.Items {
		if slices.Contains(all, i.Namespace) {
			continue
		}
		is, err := v.may(ctx, user, list(i.Namespace), "")
		if err != nil {
			return nil, err
		}
		if is {
			all = append(all, i.Namespace)
		}
	}
	return all, nil
}
