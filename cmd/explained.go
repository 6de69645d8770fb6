package cmd

import (
	"fmt"
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

// explained adds what to do if the cluster does not know the kind or the user, or if somebody else writes a field. It keeps the exit code.
func explained(err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%w; install the operator's CRDs first", err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w; another tool wrote these fields: change them with that tool", err)
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err) && isNobody(err.Error()):
		return fmt.Errorf("%w; you are not logged in, or no longer: log in, e.g. with oc login, or name who you are with --kubeconfig or --context", err)
	}
	return err
}

// isNobody says that a request had no credentials, as after oc logout. Which kinds there are every user may ask; client-go does not read why
// that is forbidden (client-go v0.37, rest/request.go, newUnstructuredResponseError).
func isNobody(forbidden string) bool {
	return strings.Contains(forbidden, `"system:anonymous"`) || strings.HasSuffix(forbidden, ": unknown")
}
