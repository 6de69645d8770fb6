package cmd

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
)

// clusterFlags say which cluster a command uses, in which namespace, and as whom: kubectl's flags, with kubectl's meaning.
type clusterFlags struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
}

func bindCluster(cmd *cobra.Command) *clusterFlags {
	c := &clusterFlags{rules: clientcmd.NewDefaultClientConfigLoadingRules()}
	flags := cmd.Flags()
	flags.StringVar(&c.rules.ExplicitPath, "kubeconfig", "", "kubeconfig to read (default: $KUBECONFIG, or ~/.kube/config)")
	flags.StringVar(&c.overrides.CurrentContext, "context", "", "context of the kubeconfig (default: its current context)")
	flags.StringVarP(&c.overrides.Context.Namespace, "namespace", "n", "", "namespace (default: the context's)")
	flags.StringVar(&c.overrides.AuthInfo.Impersonate, "as", "", "user to act as")
	flags.StringArrayVar(&c.overrides.AuthInfo.ImpersonateGroups, "as-group", nil, "group to act as; can be repeated")
	return c
}

func (c *clusterFlags) config() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, &c.overrides)
}

// namespace that the flags choose; no cluster is asked.
func (c *clusterFlags) namespace() (string, error) {
	namespace, _, err := c.config().Namespace()
	return namespace, c.explain(err)
}

// client of the cluster, which writes each warning once.
func (c *clusterFlags) client(warnings io.Writer) (client.Client, error) {
	return c.clientListening(warnings)
}

// clientListening is a client whose answers these hear, too.
func (c *clusterFlags) clientListening(warnings io.Writer, hear ...transport.WrapperFunc) (client.Client, error) {
	config, err := c.rest(warnings)
	if err != nil {
		return nil, err
	}
	for _, h := range hear {
		config.Wrap(h)
	}
	return clientOf(config)
}

func clientOf(config *rest.Config) (api client.Client, err error) {
	kinds, err := kindsOf(config)
	if err == nil {
		api, err = client.New(config, client.Options{Scheme: controller.Scheme(), Mapper: kinds})
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return api, nil
}

// naming says of whom there was no answer, and where to look: net/http says that a request was cancelled.
type naming struct {
	next      http.RoundTripper
	apiServer string
	until     time.Time // the client's certificate holds; zero if it has none
}

// RoundTrip implements http.RoundTripper.
func (n naming) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := n.next.RoundTrip(r)
	if err == nil {
		if refused := n.refusal(r, answer); refused != nil {
			return nil, unanswered{refused, refused}
		}
		return answer, nil
	}
	if end, ends := r.Context().Deadline(); ends && !time.Now().Before(end) {
		return nil, unanswered{fmt.Errorf("no answer from %s in time, though it may take connections: look at the API server and at the load balancer or proxy before it", n.apiServer), err}
	}
	return nil, n.why(err)
}

// WrappedRoundTripper is whom client-go cancels requests at.
func (n naming) WrappedRoundTripper() http.RoundTripper { return n.next }

// An API server that takes connections and never answers, or not to the end, ends a command. One that works ends most requests after a minute itself
// (kube-apiserver --request-timeout). Which kinds it has is asked first, outside of the command's context (controller-runtime's mapper).
var (
	answersWithin    = time.Minute
	tellsKindsWithin = 9 * time.Second
)

func kindsOf(config *rest.Config) (meta.RESTMapper, error) {
	asking := rest.CopyConfig(config)
	asking.Timeout = tellsKindsWithin
	by, err := rest.HTTPClientFor(asking)
	if err != nil {
		return nil, err
	}
	return apiutil.NewDynamicRESTMapper(asking, by)
}

// loggedIn fails for who has no credentials that hold. The version is told to everybody; which kinds there are, to every user (ClusterRole
// system:discovery). What else is wrong shows where it matters.
func loggedIn(api client.Client) error {
	_, err := api.RESTMapper().RESTMapping(v1alpha1.GroupVersion.WithKind("Infra").GroupKind())
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return fmt.Errorf("asking which kinds are served: %w", err)
	}
	return nil
}

// rest is how to connect to the cluster, whose warnings are written once each.
func (c *clusterFlags) rest(warnings io.Writer) (*rest.Config, error) {
	config, err := c.config().ClientConfig()
	if err != nil {
		return nil, c.explain(err)
	}
	if err := c.usable(config); err != nil {
		return nil, err
	}
	until := certifiedUntil(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return naming{next, config.Host, until} })
	config.Timeout = answersWithin
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	return config, nil
}
