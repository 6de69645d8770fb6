package cmd

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"
)

// explaining has a person told what to do about the errors of a command and of those below it. client-go's log, which names its own source lines,
// is for services: what it has to say of a request is in the error, too.
func explaining(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		klog.SetLogger(logr.Discard())
		return explained(run(cmd, args))
	}
	for _, sub := range cmd.Commands() {
		explaining(sub)
	}
	return cmd
}

// explained says why there was no answer without client-go's words before it, and adds what to do if the cluster does not know the kind or the user,
// or if somebody else writes a field. It keeps the exit code.
func explained(err error) error {
	var request *url.Error
	var told unanswered
	switch {
	case errors.As(err, &request) && strings.Contains(request.Err.Error(), clientTimeout): // net/http keeps the sentence, and not the error
		says, _, _ := strings.Cut(request.Err.Error(), clientTimeout)
		return instead(err, request, says)
	case errors.As(err, &request) && errors.As(request, &told):
		return instead(err, request, told.Error())
	case request != nil && strings.Contains(err.Error(), credentials): // it goes on with links to client-go's documentation
		_, why, _ := strings.Cut(err.Error(), credentials)
		why, _, _ = strings.Cut(why, "\n")
		return exit{fmt.Errorf("the kubeconfig has a plugin that gets credentials, and it failed: %s; install or mend it, or log in without it", why), ExitCode(err)}
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%w; install the operator's CRDs first", err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w; another tool wrote these fields: change them with that tool", err)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err) && isNobody(err.Error()):
		return fmt.Errorf("%w; you are not logged in, or no longer: log in, e.g. with oc login, or name who you are with --kubeconfig or --context", err)
	}
	return err
}

// clientTimeout is what net/http adds to an error where its client has waited long enough (Go 1.26, net/http/client.go, do).
const clientTimeout = " (Client.Timeout exceeded"

// instead puts a sentence in the place of a request's error.
func instead(err error, request *url.Error, says string) error {
	says = strings.Replace(err.Error(), request.Error(), says, 1)
	return exit{errors.New(strings.Replace(says, "failed to get server groups: ", "", 1)), ExitCode(err)} // client-go v0.37, discovery
}

// credentials begins what went wrong with a plugin of the kubeconfig (client-go v0.37, plugin/pkg/client/auth/exec, roundTripper).
const credentials = "getting credentials: "

// isNobody says that a request had no credentials, as after oc logout. Which kinds there are every user may ask; client-go does not read why
// that is forbidden (client-go v0.37, rest/request.go, newUnstructuredResponseError).
func isNobody(forbidden string) bool {
	return strings.Contains(forbidden, `"system:anonymous"`) || strings.HasSuffix(forbidden, ": unknown")
}
