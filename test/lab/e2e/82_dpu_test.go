//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	ignition "github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_4/types"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/cldmnky/oooi/test/lab/scene"
	"github.com/cldmnky/oooi/test/lab/standin"
)

// A DPU is installed from what its bridge has made, and joins. DPF's objects are those of its own guide, with what DPF 26.4 asks for; the test plays DPF, which
// renders the one template that matches the DPU, and the DPU, whose live system runs as far as one without a card does. What that hands to
// coreos-installer is what the virtual machine boots with, by the real Ignition.
func TestADPUIsInstalledFromItsBridge(t *testing.T) {
	ctx := within(t, 20*time.Minute)
	aroundBridges(t, ctx, "dpu1")
	vlan80(t, ctx)
	const installation = "04-dpudeployment-installation/"
	documentedDPF(t, ctx, "host-trusted", installation+"bfb.yaml", installation+"hbn-dpuflavor.yaml", installation+"dpudeployment.yaml")
	configDPF(t, ctx, `{"provisioningController":{"enableDynamicBFCFGTemplates":true}}`)
	kubectl(t, ctx, "-n", dpfNamespace, "annotate", "dpudeployment", "hbn-only", "hostedcluster.densityops.com/allowed-namespaces=clusters")
	bridge(t, ctx, bridgeYAML(t, ctx, "dpu1", "dpu1", "--control-plane-availability-policy", "SingleReplica"), "dpu1")
	kubectl(t, ctx, "-n", "clusters", "patch", "dpuhcpbridge", "dpu1", "--type=merge", "-p", `{"spec":{"dpuDeploymentRef":{"name":"hbn-only","namespace":"`+dpfNamespace+`"}}}`)
	isMade(t, ctx, "dpu1")
	isAdopted(t, ctx)
	message := bridgeIs(t, ctx, "IgnitionConfigured", "False", "NamespaceNotGranted")
	if !strings.Contains(message, "kubectl apply -n clusters-dpu1 -k config/components/dpu-bridge") {
		t.Errorf("the message does not say how to grant it: %s", message)
	}
	kubectl(t, ctx, "apply", "-n", "clusters-dpu1", "-k", "config/components/dpu-bridge")
	bridgeIs(t, ctx, "IgnitionConfigured", "True", "")
	anotherMTUFollows(t, ctx, 9000)

	apply(t, ctx, strings.Replace(infraOfDPUs, `, hostname: dpu-1`, "", 1))
	awaitCondition(t, ctx, "clusters", "infra/dpu1", "Ready", "True", "")
	m := installedFromTemplate(t, ctx, "dpu-1", "dpf-provisioning-hbn", "trusted", "")
	dpusBoot(t, ctx, m)
	nodeIsReady(t, ctx, m)
	hasWhatADPUNeeds(t, ctx, m)
	says(t, ctx, m, map[string]string{ofMode: "DPUMode=trusted", ofHost: "ok", ofKubeconfig: "none", ofOOB: "disabled", ofCommCh: "auto"})
	hasUnits(t, ctx, m, "ok", "pf-monitor", "report-machineosurl")
	hasMTU(t, ctx, m, 9000)
	removedByDPF(t, ctx, m)
	flavorsShareAHostedCluster(t, ctx)
}

// documentedDPF applies manifests of DPF's own guide to a deploymentMode, which DPFOperatorConfig has since 26.4, and the guide has not.
func documentedDPF(t *testing.T, ctx context.Context, mode string, paths ...string) {
	t.Helper()
	source, err := standin.DPF(ctx)
	must(t, err)
	const config = "02-dpf-system-installation/operatorconfig.yaml"
	for _, path := range append(paths, config) {
		variables := strings.NewReplacer("$BFB_URL", "http://e2e.local/bf-bundle.bfb", "$DPU_P0", "p0", "$TARGETCLUSTER_API_SERVER_HOST", "e2e.local") // the guide's reader sets them
		text := variables.Replace(string(content(t, filepath.Join(source, "docs/public/user-guides", mode, "use-cases/hbn/manifests", path))))
		if path == config {
			text = strings.Replace(text, "\nspec:\n", "\nspec:\n  deploymentMode: "+mode+"\n", 1)
		}
		apply(t, ctx, text)
	}
}

// configDPF changes the spec of DPFOperatorConfig, which then has all of it: an API server drops what a CRD does not know.
func configDPF(t *testing.T, ctx context.Context, change string) {
	t.Helper()
	spec := []byte(kubectl(t, ctx, "-n", dpfNamespace, "patch", "dpfoperatorconfig", "dpfoperatorconfig", "--type=merge", "-p", `{"spec":`+change+`}`, "-o", "jsonpath={.spec}"))
	wanted, err := jsonpatch.MergePatch(spec, []byte(change))
	must(t, err)
	if !jsonpatch.Equal(spec, wanted) {
		t.Errorf("of %s DPFOperatorConfig has %s", change, spec)
	}
}

// isAdopted: the stand-in starts the hosted cluster that the operator created, and it is available.
func isAdopted(t *testing.T, ctx context.Context) {
	t.Helper()
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Standin(ctx, "delete", "--cluster", "dpu1")
		return err
	})
	_, err := lab.Standin(ctx, "adopt", "--cluster", "dpu1")
	must(t, err)
	bridgeIs(t, ctx, "HostedClusterAvailable", "True", "AsExpected")
}

// theTemplate finds the template of dpu1's DPUs with a flavor as DPF does (doca-platform, pkg/bfcfg/bfcfg.go): there must be exactly one.
func theTemplate(ctx context.Context, flavor string) (string, error) {
	const prefix = "provisioning.dpu.nvidia.com/bfcfg-template-"
	var list struct {
		Items []struct {
			Metadata struct {
				Name        string
				Annotations map[string]string
			}
			Data map[string]string
		}
	}
	out, err := lab.Kubectl(ctx, "-n", dpfNamespace, "get", "configmaps", "-l", "provisioning.dpu.nvidia.com/bfcfg-template=true", "-o", "json")
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return "", err
	}
	var found []string
	for _, m := range list.Items {
		matches := true
		for kind, name := range map[string]string{"cluster": "dpu1", "bfb": "bf-bundle", "dpuflavor": flavor} {
			matches = matches && m.Metadata.Annotations[prefix+kind+"-name"] == name && m.Metadata.Annotations[prefix+kind+"-namespace"] == dpfNamespace
		}
		if matches {
			found = append(found, m.Data["BF_CFG_TEMPLATE"])
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d templates of %d match a DPU with flavor %s, want one", len(found), len(list.Items), flavor)
	}
	return found[0], nil
}

// rendered is the ignition that DPF makes of a template for a DPU. In zero-trust the DPU gets a kubeconfig for the management cluster.
func rendered(t *testing.T, text, dpu, kubeconfig string) []byte {
	t.Helper()
	parsed, err := template.New("bf.cfg").Funcs(sprig.FuncMap()).Option("missingkey=error").Parse(text)
	must(t, err)
	var out bytes.Buffer
	must(t, parsed.Execute(&out, struct{ DPUHostName, DPUName, DPUNamespace, DPUUID, BootstrapKubeconfig string }{
		dpu, dpu, dpfNamespace, "0a1b2c3d-0000-4000-8000-000000000001", kubeconfig,
	}))
	return out.Bytes()
}

// anotherMTUFollows: it is in the template within five seconds.
func anotherMTUFollows(t *testing.T, ctx context.Context, mtu int) {
	t.Helper()
	const profile = "/etc/NetworkManager/system-connections/pf0vf0.nmconnection"
	want, changed := fmt.Sprintf("mtu=%d\n", mtu), time.Now()
	configDPF(t, ctx, fmt.Sprintf(`{"networking":{"highSpeedMTU":%d}}`, mtu))
	must(t, scene.Until(ctx, "a template with the new MTU", func(ctx context.Context) error {
		text, err := theTemplate(ctx, "dpf-provisioning-hbn")
		if err == nil && !strings.Contains(inTarget(t, rendered(t, text, "any", ""), profile), want) {
			return fmt.Errorf("%s has no %s", profile, want)
		}
		return err
	}))
	inTime(t, "another MTU is in the template", changed, 5*time.Second)
}

// inTarget is a file of the target that a live ignition installs.
func inTarget(t *testing.T, live []byte, path string) string {
	t.Helper()
	target := fileOf(t, live, "/var/target.ign")
	return string(fileOf(t, target, path))
}

func fileOf(t *testing.T, config []byte, path string) []byte {
	t.Helper()
	parsed, report, err := ignition.Parse(config)
	if err != nil {
		t.Fatalf("%v: %s", err, report.String())
	}
	for _, f := range parsed.Storage.Files {
		if f.Path == path {
			return contentOf(t, f.Contents)
		}
	}
	t.Fatalf("there is no file %s", path)
	return nil
}

func contentOf(t *testing.T, of types.Resource) []byte {
	t.Helper()
	_, data, _ := strings.Cut(*of.Source, ",")
	text, err := url.PathUnescape(data)
	must(t, err)
	if strings.Contains(*of.Source, ";base64,") {
		raw, err := base64.StdEncoding.DecodeString(data)
		must(t, err)
		text = string(raw)
	}
	if of.Compression == nil || *of.Compression == "" {
		return []byte(text)
	}
	unpacked, err := gzip.NewReader(strings.NewReader(text))
	must(t, err)
	all, err := io.ReadAll(unpacked)
	must(t, err)
	return all
}
