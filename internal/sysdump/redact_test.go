package sysdump

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

func TestWhatLooksLikeASecretIsTakenOut(t *testing.T) {
	for text, want := range map[string]string{
		"lease 192.168.100.20 of 52:54:00:00:00:01 until 2026-11-27T12:00:00Z":        "lease 192.168.100.20 of 52:54:00:00:00:01 until 2026-11-27T12:00:00Z",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nafter": "REDACTED\nafter",
		"-----BEGIN PRIVATE KEY-----\nMIIE, and the end is missing":                   "REDACTED, and the end is missing",
		"-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----":                "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
		"Authorization: Bearer abcdef0123456789":                                      "Authorization: Bearer REDACTED",
		"token eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJr.c2lnbmF0dXJl is refused":             "token REDACTED is refused",
		`{"auths": {"quay.io": {"auth": "dTpwYXNz"}}}`:                                `{"auths": {"quay.io": {"auth": "REDACTED"}}}`,
		`"{\"auths\":{\"quay.io\":{\"auth\":\"dTpwYXNz\"}}}"`:                         `"{\"auths\":{\"quay.io\":{\"auth\":\"REDACTED\"}}}"`,
		"client-key-data: LS0tLS1CRUdJTg==\nname: admin":                              "client-key-data: REDACTED\nname: admin",
		"password=hunter22 user=a":                                                    "password=REDACTED user=a",
		"http://svc:Pa55w0rd@proxy:3128":                                              "http://REDACTED@proxy:3128",
		`{"password":"hunter,22 }", "a": 1}`:                                          `{"password":"REDACTED", "a": 1}`,
		`{\"password\":\"hunter22\"}`:                                                 `{\"password\":\"REDACTED\"}`,
		"chpasswd -e <<< 'core:$6$salt$0123456789abcdef'":                             "chpasswd -e <<< 'core:REDACTED'",
		"oc login --token sha256~0123456789abcdefghijKLMNOP":                          "oc login --token REDACTED",
		"ca: LS0tLS1CRUdJTiBSU0EgUFJJVkFURQ==":                                        "ca: REDACTED",
		"pull: eyJhdXRocyI6IHsicXVheS5pbyI6IHt9fX0=":                                  "pull: REDACTED",
		"event worker-abcdef.17f2a3b4c5d6e7f8":                                        "event worker-abcdef.17f2a3b4c5d6e7f8",
		"verifying token: x509: certificate has expired":                              "verifying token: x509: certificate has expired",
		"-----BEGIN PRIVATE KEY-----\nMIIE+/=\n(cut) the rest":                        "REDACTED(cut) the rest",
		"kubeadm join --token abcdef.0123456789abcdef":                                "kubeadm join --token REDACTED",
	} {
		NewWithT(t).Expect(redactText(text)).To(Equal(want))
	}
}

func TestWhatMayBeASecretIsTakenOutOfAnObject(t *testing.T) {
	g := NewWithT(t)
	var object map[string]any
	g.Expect(yaml.Unmarshal([]byte(`
metadata:
  name: worker-1
  managedFields: [{manager: kubectl}]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter22, note: kept}
spec:
  pullSecret: pull
  kubeconfig: d1-kubeconfig
  env: [{name: HTTP_PASSWORD, value: hunter22}, {name: A, value: kept}]
  userDataSecretRef: {name: user-data}
  tokenSecretName: kept
  volumes: [{cloudInitNoCloud: {userData: "#cloud-config hunter22", networkData: hunter22}}]
  config: '{"password": "hunter22"}'
`), &object)).To(Succeed())
	redactObject(object)
	text, err := yaml.Marshal(object)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).NotTo(ContainSubstring("hunter22"))
	g.Expect(strings.TrimSpace(string(text))).To(Equal(`metadata:
  annotations:
    note: kept
  name: worker-1
spec:
  config: '{"password": "REDACTED"}'
  env:
  - name: HTTP_PASSWORD
    value: REDACTED, 8 octets
  - name: A
    value: kept
  kubeconfig: d1-kubeconfig
  pullSecret: pull
  tokenSecretName: kept
  userDataSecretRef:
    name: user-data
  volumes:
  - cloudInitNoCloud:
      networkData: REDACTED, 8 octets
      userData: REDACTED, 22 octets`))
}
