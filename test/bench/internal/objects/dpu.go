package objects

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/dpf"
)

// CreateDPU of a DPUCluster, with an installed OS, and without a BFB, so that nobody makes a template for it.
func CreateDPU(ctx context.Context, api client.Client, name string, cluster types.NamespacedName) error {
	d := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": cluster.Namespace, "name": name},
		"spec": map[string]any{
			"dpuNodeName": "host", "dpuDeviceName": name, "bfb": "", "dpuFlavor": "flavor", "nodeEffect": map[string]any{"drain": true}, "serialNumber": name,
			"cluster": map[string]any{"name": cluster.Name, "namespace": cluster.Namespace},
		},
	}}
	d.SetGroupVersionKind(dpf.GroupVersion.WithKind("DPU"))
	if err := api.Create(ctx, d); err != nil {
		return err
	}
	installed := fmt.Sprintf(`{"status": {"phase": "Ready", "conditions": [{"type": %q, "status": "True", "reason": "Bench", "message": "", "lastTransitionTime": %q}]}}`,
		dpf.ConditionOSInstalled, time.Now().UTC().Format(time.RFC3339))
	return api.Status().Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(installed)))
}

// Bootstrapper is the user of a kubelet's first CSR.
var Bootstrapper = rest.ImpersonationConfig{
	UserName: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
	Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"},
}

// Clients of a hosted cluster: an administrator's, and the Bootstrapper's, who may create CSRs from now on.
func Clients(ctx context.Context, config *rest.Config) (admin, kubelet kubernetes.Interface, err error) {
	if admin, err = kubernetes.NewForConfig(config); err != nil {
		return nil, nil, err
	}
	as := rest.CopyConfig(config)
	as.Impersonate = Bootstrapper
	if kubelet, err = kubernetes.NewForConfig(as); err != nil {
		return nil, nil, err
	}
	_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "may-ask"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}},
	}, metav1.CreateOptions{})
	return admin, kubelet, err
}

// CSR is the first of a host's kubelet. Callers choose the key, by which the approver tells requesters apart (internal/guest/approve,
// queue.go).
func CSR(key *ecdsa.PrivateKey, name, host string) (*certv1.CertificateSigningRequest, error) {
	subject := pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + host}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	return &certv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certv1.KubeAPIServerClientKubeletSignerName,
		Usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageClientAuth},
	}}, err
}
