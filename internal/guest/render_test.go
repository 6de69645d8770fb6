package guest_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
)

func TestAKubeconfigIsMadeAnewOfWhatIsUsedOfIt(t *testing.T) {
	g := NewWithT(t)
	access := kubeconfig.Access{Server: "https://api.example.com:6443", CA: []byte("ca"), Certificate: []byte("cert"), Key: []byte("key")}
	made := clientcmdapi.Config{}
	g.Expect(yaml.UnmarshalStrict(access.Kubeconfig(), &made)).To(Succeed())
	g.Expect(made).To(Equal(clientcmdapi.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: "hosted-cluster",
		Clusters:  []clientcmdapi.NamedCluster{{Name: "hosted-cluster", Cluster: clientcmdapi.Cluster{Server: access.Server, CertificateAuthorityData: access.CA}}},
		AuthInfos: []clientcmdapi.NamedAuthInfo{{Name: "hosted-cluster", AuthInfo: clientcmdapi.AuthInfo{ClientCertificateData: access.Certificate, ClientKeyData: access.Key}}},
		Contexts:  []clientcmdapi.NamedContext{{Name: "hosted-cluster", Context: clientcmdapi.Context{Cluster: "hosted-cluster", AuthInfo: "hosted-cluster"}}},
	}))
	token := clientcmdapi.Config{}
	g.Expect(yaml.UnmarshalStrict(kubeconfig.Access{Server: access.Server, CA: access.CA, Token: "t"}.Kubeconfig(), &token)).To(Succeed())
	g.Expect(token.AuthInfos[0].AuthInfo).To(Equal(clientcmdapi.AuthInfo{Token: "t"}))
}
