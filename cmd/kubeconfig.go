package cmd

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/yamldoc"
)

// explain says which cluster was not found, and where a kubeconfig was looked for. client-go advises to set KUBERNETES_MASTER, which it does not read,
// and names Go's types of what is malformed.
func (c *clusterFlags) explain(err error) error {
	if err == nil {
		return nil
	}
	files := c.rules.GetLoadingPrecedence()
	for _, file := range files {
		text, unread := os.ReadFile(file)
		if unread != nil { // err says so, or it may be missing
			continue
		}
		if why := malformed(text); why != nil {
			return fmt.Errorf("finding the cluster: the kubeconfig %s cannot be read: %w; get a new one, e.g. with oc login, or name another with --kubeconfig or $KUBECONFIG", file, why)
		}
	}
	names := strings.Join(files, ", ")
	if why := c.contextless(); why != "" {
		return fmt.Errorf("finding the cluster: the kubeconfig %s has %s", names, why)
	}
	if clientcmd.IsEmptyConfig(err) {
		return fmt.Errorf("finding the cluster: none is in the kubeconfig %s: give one with --kubeconfig or $KUBECONFIG", names)
	}
	return fmt.Errorf("finding the cluster: %w", err)
}

// malformed says why a text is no kubeconfig; nil if it is one.
func malformed(text []byte) error {
	var is struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	var anything any
	if err := yaml.Unmarshal(text, &anything); err != nil {
		return yamldoc.NotYAML(text, err)
	}
	if anything == nil { // an empty one is one
		return nil
	}
	if yaml.Unmarshal(text, &is) != nil || cmp.Or(is.Kind, "Config") != "Config" || cmp.Or(is.APIVersion, "v1") != "v1" {
		return errors.New("it has to begin with apiVersion: v1 and kind: Config")
	}
	err := yaml.Unmarshal(text, &clientcmdv1.Config{})
	var mistyped *json.UnmarshalTypeError
	var undecoded base64.CorruptInputError
	switch {
	case errors.As(err, &mistyped):
		return finding.Mistyped(mistyped.Field, mistyped.Value, mistyped.Type)
	case errors.As(err, &undecoded):
		return errors.New("one of its fields whose names end in -data is not in base64, or was cut")
	}
	return err
}

// contextless says which context, or cluster of a context, is missing; empty if none is.
func (c *clusterFlags) contextless() string {
	all, err := c.config().RawConfig()
	if err != nil || len(all.Contexts) == 0 {
		return ""
	}
	has := strings.Join(slices.Sorted(maps.Keys(all.Contexts)), ", ")
	name := cmp.Or(c.overrides.CurrentContext, all.CurrentContext)
	of, is := all.Contexts[name]
	switch {
	case name == "":
		return fmt.Sprintf("no current context: choose one of %s with --context", has)
	case !is:
		return fmt.Sprintf("no context %q: choose one of %s", name, has)
	case all.Clusters[of.Cluster] == nil:
		return fmt.Sprintf("no cluster %q, which its context %s names: choose another context with --context, or get a new kubeconfig", of.Cluster, name)
	}
	return ""
}

// usable refuses what client-go would find out only when it connects.
func (c *clusterFlags) usable(config *rest.Config) error {
	names := strings.Join(c.rules.GetLoadingPrecedence(), ", ")
	if _, _, err := rest.DefaultServerUrlFor(config); err != nil {
		return fmt.Errorf("finding the cluster: %q is no server's address: write one like https://api.example.com:6443 as server in the kubeconfig %s", config.Host, names)
	}
	certificates := rest.CopyConfig(config)
	certificates.ExecProvider, certificates.AuthProvider = nil, nil
	if _, err := rest.TLSConfigFor(certificates); err != nil {
		return fmt.Errorf("finding the cluster: the certificates that the kubeconfig %s has or names cannot be used: %w; get a new one, e.g. with oc login", names, err)
	}
	if _, err := config.TransportConfig(); err != nil {
		return fmt.Errorf("finding the cluster: what the kubeconfig %s says of its user cannot be used: %w; get a new one, e.g. with oc login", names, err)
	}
	return nil
}
