package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/hypershift"
	"github.com/cldmnky/oooi/test/bench/internal/audited"
	"github.com/cldmnky/oooi/test/bench/internal/objects"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

const (
	// ignitionHost is what the ignition servers of all control planes are called in TLS, and bfb what all DPUs boot to be installed.
	ignitionHost, bfb = "ignition.example.com", "rhcos"
	// dpfNamespace is where DPF looks for templates.
	dpfNamespace = "dpf-operator-system"
	// ignitionSize is that of each control plane's ignition in octets, half of which remains when it is compressed.
	ignitionSize = 200 << 10
	// edits is how many flavors are changed, one after another.
	edits = 20
)

func flavorName(bridge, flavor int) string { return fmt.Sprintf("%s-f%d", name(bridge), flavor) }

func ignitionToken(bridge int) string { return fmt.Sprintf("%08x", bridge+1) }

func ofDPF(in schema.GroupVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec}}
	u.SetGroupVersionKind(in.WithKind(kind))
	return u
}

// flavorOf has a script, whose spec DPF lets nobody change.
func flavorOf(name, script string) *unstructured.Unstructured {
	f := ofDPF(dpf.GroupVersion, "DPUFlavor", objects.Namespace, name, map[string]any{"ovs": map[string]any{"rawConfigScript": script}})
	f.SetAnnotations(map[string]string{dpf.AnnotationSkipSizeCheck: ""})
	return f
}

// ofDPF are DPF's own objects, and what DPUs of each flavor of each bridge are installed with.
func (b bench) ofDPF() []client.Object {
	all := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: dpfNamespace}},
		ofDPF(dpf.OperatorGroupVersion, "DPFOperatorConfig", dpfNamespace, "dpf", map[string]any{"deploymentMode": "host-trusted", "provisioningController": map[string]any{"enableDynamicBFCFGTemplates": true}}),
		ofDPF(dpf.GroupVersion, "BFB", objects.Namespace, bfb, map[string]any{"url": "http://example.com/rhcos.bfb"}),
	}
	for n := range b.bridges {
		for f := range b.flavors {
			at := flavorName(n, f)
			all = append(all, flavorOf(at, "true"), ofDPF(dpf.GroupVersion, "DPU", objects.Namespace, at, map[string]any{
				"dpuNodeName": at, "dpuDeviceName": "p0", "serialNumber": at, "bfb": bfb, "dpuFlavor": at, "nodeEffect": map[string]any{"drain": true},
				"cluster": map[string]any{"name": name(n), "namespace": objects.Namespace},
			}))
		}
	}
	return all
}

// rollOut lets the ignition server have each bridge's ignition, once HyperShift serves its HostedCluster.
func (b bench) rollOut(ctx context.Context) error {
	for n := range b.bridges {
		hc, pool := &hyperv1.HostedCluster{}, &hyperv1.NodePool{}
		for _, o := range []client.Object{hc, pool} {
			if err := b.api.Get(ctx, client.ObjectKey{Namespace: objects.Namespace, Name: name(n)}, o); err != nil {
				return err
			}
		}
		at := endpoint.IgnitionCA(endpoint.ControlPlaneNamespace(hc))
		err := objects.Create(ctx, b.api, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: at.Namespace}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}, Data: map[string][]byte{corev1.TLSCertKey: b.ignition.CA}})
		if err != nil {
			return err
		}
		b.ignition.Has(ignitionToken(n), ignitionOf(n))
		if err := hypershift.RollOut(ctx, b.api, hc, pool, ignitionHost, ignitionToken(n)); err != nil {
			return fmt.Errorf("rolling HostedCluster %s out: %w", name(n), err)
		}
	}
	return nil
}

// ignitionOf is HyperShift's for a bridge.
func ignitionOf(bridge int) []byte {
	var digits strings.Builder
	for sum := sha256.Sum256([]byte(name(bridge))); digits.Len() < ignitionSize; sum = sha256.Sum256(sum[:]) {
		digits.WriteString(hex.EncodeToString(sum[:]))
	}
	return fmt.Appendf(nil, `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/digits","contents":{"source":"data:,%s"}},`+
		`{"path":"/etc/ignition-machine-config-encapsulated.json","contents":{"source":"data:,%%7B%%22spec%%22%%3A%%7B%%22osImageURL%%22%%3A%%22a%%22%%7D%%7D"}}]}}`, digits.String())
}

// templates are all that DPF finds, without their texts.
func (b bench) templates(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	err := b.api.List(ctx, all, client.InNamespace(dpfNamespace), client.MatchingLabels{dpf.LabelTemplate: "true"})
	return all.Items, err
}

// templated says whether there is a template for each flavor of each bridge.
func (b bench) templated(ctx context.Context) (bool, error) {
	all, err := b.templates(ctx)
	return len(all) == b.bridges*b.flavors, err
}

// edit replaces flavors as DPF lets one change them, by deletion, and adds to a table what became of that.
func (b bench) edit(ctx context.Context, t *table.Table) error {
	before, err := b.Writes()
	if err != nil {
		return err
	}
	var took []time.Duration
	var edited []string
	for i := range edits {
		bridge, flavor := i*b.bridges/edits, i%b.flavors
		at := types.NamespacedName{Namespace: objects.Namespace, Name: flavorName(bridge, flavor)}
		edited = append(edited, names.BridgeTemplate(objects.Namespace, name(bridge), objects.Namespace+"/"+bfb, at.String()))
		one, err := b.editOne(ctx, at.Name, edited[i])
		if err != nil {
			return fmt.Errorf("after an edit of DPUFlavor %s: %w", at, err)
		}
		took = append(took, one)
	}
	if err := b.Settle(ctx); err != nil {
		return err
	}
	after, err := b.Writes()
	if err != nil {
		return err
	}
	meanwhile := after[len(before):]
	others := slices.DeleteFunc(slices.Clone(meanwhile), func(w audited.Write) bool {
		return w.ObjectRef.Resource != "configmaps" || slices.Contains(edited, w.ObjectRef.Name)
	})
	table.Below(t, fmt.Sprintf("a flavor is replaced: its template is new, slowest of %d", edits), slices.Max(took).Round(time.Millisecond), 5*time.Second)
	t.Say("half of them", table.Percentile(took, 50).Round(time.Millisecond))
	t.Say("mutating calls for each", fmt.Sprintf("%.1f", float64(len(meanwhile))/edits))
	t.None("of them for templates of other flavors", len(others))
	return nil
}

// editOne replaces a flavor, and measures the time until its template is another.
func (b bench) editOne(ctx context.Context, flavor, template string) (time.Duration, error) {
	content := func() (string, error) {
		all, err := b.templates(ctx)
		i := slices.IndexFunc(all, func(m metav1.PartialObjectMetadata) bool { return m.Name == template })
		if err != nil || i < 0 {
			return "", err
		}
		return all[i].Annotations[names.AnnotationTemplateContent], nil
	}
	old, err := content()
	if err != nil || old == "" {
		return 0, fmt.Errorf("there is no ConfigMap %s/%s: %w", dpfNamespace, template, err)
	}
	if err := b.api.Delete(ctx, flavorOf(flavor, "")); err != nil {
		return 0, err
	}
	if err := b.api.Create(ctx, flavorOf(flavor, "false")); err != nil {
		return 0, err
	}
	begin := time.Now()
	err = b.Until(ctx, func() (bool, error) {
		is, err := content()
		return is != "" && is != old, err
	})
	return time.Since(begin), err
}
