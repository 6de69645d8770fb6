//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The archive of a cluster that works has none of the secrets that are in the cluster: kubeconfigs, tokens, keys, pull secrets, ignition.
func TestASysdumpHasNoSecretOfTheCluster(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	canary := plantsCanaries(t, ctx)
	archive := filepath.Join(t.TempDir(), "dump.tar.gz")
	_, err := lab.Run(ctx, "oooi", "sysdump", "-o", archive)
	must(t, err)
	_, err = lab.Run(ctx, "tar", "-xzf", archive, "-C", filepath.Dir(archive))
	must(t, err)
	var all strings.Builder
	must(t, filepath.Walk(filepath.Join(filepath.Dir(archive), "oooi-sysdump"), func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	}))
	for _, wanted := range []string{"kind: Infra\n", "kind: HostedCluster\n", "leaderelection", "kind: DHCPLease\n", canaryNote + ": Bearer REDACTED\n", "CanarySang: it sings with token=REDACTED\n"} {
		if !strings.Contains(all.String(), wanted) {
			t.Errorf("the archive has no %q", wanted)
		}
	}
	if strings.Contains(all.String(), canary) || strings.Contains(all.String(), base64.StdEncoding.EncodeToString([]byte(canary))) {
		t.Error("the archive has the canary")
	}
	var secrets struct {
		Items []struct {
			Metadata struct{ Namespace, Name string }
			Data     map[string]string
		}
	}
	must(t, json.Unmarshal([]byte(kubectl(t, ctx, "get", "secrets", "-A", "-o", "json")), &secrets))
	looked := 0
	for _, s := range secrets.Items {
		for key, encoded := range s.Data {
			plain, err := base64.StdEncoding.DecodeString(encoded)
			must(t, err)
			if !strings.HasSuffix(key, ".key") && !slices.Contains([]string{"kubeconfig", "token", ".dockerconfigjson", "payload", "userData", "value", "key"}, key) {
				continue // certificates, releases and paths are none
			}
			looked++
			for _, line := range append(strings.Split(string(plain), "\n"), encoded) {
				line = strings.TrimSpace(line)
				if len(line) >= 24 && isSecret(line) && strings.Contains(all.String(), line) {
					t.Errorf("a line of key %s of Secret %s/%s is in the archive", key, s.Metadata.Namespace, s.Metadata.Name)
				}
			}
		}
	}
	if looked == 0 {
		t.Error("the cluster has no secrets to look for")
	}
}

const canaryNote = "example.com/canary"

// plantsCanaries puts one secret in a Secret and a ConfigMap that look like the operator's, an annotation of an Infra, and an event of a DHCP pod.
func plantsCanaries(t *testing.T, ctx context.Context) (canary string) {
	t.Helper()
	canary = "canary-" + rand.Text()
	apply(t, ctx, strings.ReplaceAll(`
apiVersion: v1
kind: Secret
metadata: {namespace: clusters, name: canary, labels: {app.kubernetes.io/managed-by: oooi}}
stringData: {a: CANARY}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: clusters, name: canary, labels: {app.kubernetes.io/managed-by: oooi}}
data: {a: CANARY}
---
apiVersion: v1
kind: Event
metadata: {namespace: clusters, name: canary}
involvedObject: {apiVersion: v1, kind: Pod, namespace: clusters, name: canary}
type: Normal
reason: CanarySang
message: it sings with token=CANARY
`, "CANARY", canary))
	kubectl(t, ctx, "-n", "clusters", "annotate", "infra", "c1", canaryNote+"=Bearer "+canary)
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "-n", "clusters", "annotate", "infra", "c1", canaryNote+"-")
		return err
	})
	return canary
}

// isSecret says whether a line of a Secret is one: of a kubeconfig, addresses, names and the CA are none.
func isSecret(line string) bool {
	return !strings.Contains(line, "-----") && !strings.HasPrefix(line, "server: ") && !strings.HasPrefix(line, "certificate-authority-data: ") && !strings.HasPrefix(line, "current-context: ")
}
