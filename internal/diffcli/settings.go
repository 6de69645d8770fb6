package diffcli

import (
	"cmp"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Parser reads the arguments and variables of the operator's container as the operator does.
type Parser func(args []string, env func(name string) string) (Settings, error)

// operator selects the operator's Deployment.
var operator = client.MatchingLabels{"app.kubernetes.io/name": "oooi", "app.kubernetes.io/component": "manager"}

// SettingsOf reads with what settings the operator in a namespace runs. If it is not found there, its defaults are assumed, and its images are
// not known: that is noted.
func SettingsOf(ctx context.Context, api client.Reader, namespace string, parse Parser) (Settings, error) {
	all := &appsv1.DeploymentList{}
	err := api.List(ctx, all, client.InNamespace(namespace), operator)
	switch {
	case apierrors.IsForbidden(err):
		return unknown(parse, namespace, "you may not list deployments.apps in namespace "+namespace)
	case err != nil:
		return Settings{}, fmt.Errorf("reading the operator's Deployment: %w", err)
	case len(all.Items) == 0:
		return unknown(parse, namespace, "no operator runs in namespace "+namespace+" (see --operator-namespace)")
	}
	return fromDeployment(all.Items[0], parse)
}

func unknown(parse Parser, namespace, why string) (Settings, error) {
	of, err := parse(nil, func(string) string { return "" })
	of.Notes = []string{"the operator's flags and images, for which its defaults are assumed: " + why}
	return of.in(namespace), err
}

// in is the settings of an operator in a namespace: the mapping of images is there, unless a flag names another.
func (s Settings) in(namespace string) Settings {
	if s.Bridges != nil {
		s.Bridges.Images.Namespace = cmp.Or(s.Bridges.Images.Namespace, namespace)
	}
	return s
}

// fromDeployment reads them of its first container.
func fromDeployment(d appsv1.Deployment, parse Parser) (Settings, error) {
	containers := d.Spec.Template.Spec.Containers
	if len(containers) == 0 {
		return Settings{}, fmt.Errorf("Deployment %s has no container", d.Name)
	}
	of, err := parse(containers[0].Args, valueIn(containers[0].Env))
	return of.in(d.Namespace), err
}

func valueIn(all []corev1.EnvVar) func(string) string {
	return func(name string) string {
		for _, e := range all {
			if e.Name == name {
				return e.Value
			}
		}
		return ""
	}
}
