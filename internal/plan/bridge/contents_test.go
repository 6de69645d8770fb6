package bridge_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/internal/plan/bridge"
)

const (
	ed25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
	// security keys have a longer type
	sk = "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fAAAABHNzaDo="
)

func TestAnSSHKeyIsALineOfAuthorizedKeys(t *testing.T) {
	for name, c := range map[string]struct{ text, problem string }{
		"one":                            {ed25519, ""},
		"one with a comment":             {ed25519 + " core@example.com\n", ""},
		"one with options":               {`no-pty,command="uptime -p" ` + ed25519, ""},
		"one among others":               {"# ours\r\n\r\n" + ed25519 + "\r\nnonsense\r\n", ""},
		"of a security key":              {sk, ""},
		"nothing":                        {"", "has nothing in key id_rsa.pub"},
		"blank lines":                    {" \n\t\n", "has nothing in key id_rsa.pub"},
		"a comment":                      {"# " + ed25519, "has no public SSH key"},
		"a type without a key":           {"ssh-ed25519", "has no public SSH key"},
		"a type and no base64":           {"ssh-ed25519 not*base64", "has no public SSH key"},
		"a type and another's key":       {strings.Replace(ed25519, "ssh-ed25519", "ssh-rsa", 1), "has no public SSH key"},
		"a type and nothing but it":      {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", "has no public SSH key"},
		"a key that was cut in its type": {"ssh-ed25519 AAAAC3Nz", "has no public SSH key"},
		"the file's name":                {"/home/me/.ssh/id_ed25519.pub", "has no public SSH key"},
		"the private key":                {"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA==\n-----END OPENSSH PRIVATE KEY-----\n", "has a private key"},
		"the private key beside":         {ed25519 + "\n-----BEGIN PRIVATE KEY-----\n", "has a private key"},
	} {
		t.Run(name, func(t *testing.T) {
			expectProblem(t, bridge.SSHKeyProblem(holding(bridge.SSHKeyKey, c.text)), c.problem)
		})
	}
}

func TestAPullSecretHasARegistry(t *testing.T) {
	for name, c := range map[string]struct{ text, problem string }{
		"one":                  {`{"auths": {"quay.io": {"auth": "dTpw"}}}`, ""},
		"one and more beside":  {`{"auths": {"quay.io": {"auth": "dTpw", "email": "a@example.com"}}, "credsStore": "x"}`, ""},
		"nothing":              {"", "has nothing in key .dockerconfigjson"},
		"no registry":          {`{"auths": {}}`, `has no registry under "auths"`},
		"no auths":             {`{"quay.io": {"auth": "dTpw"}}`, `has no registry under "auths"`},
		"null":                 {`null`, `has no registry under "auths"`},
		"a list":               {`{"auths": ["quay.io"]}`, "has no JSON of a pull secret"},
		"a registry's text":    {`{"auths": {"quay.io": "hunter2"}}`, "has no JSON of a pull secret"},
		"two objects":          {`{"auths": {"quay.io": {}}} hunter2`, "has no JSON of a pull secret"},
		"base64 of it":         {`eyJhdXRocyI6IHt9fQ==`, "has no JSON of a pull secret"},
		"cut in the middle":    {`{"auths": {"quay.io": {"auth": "hunter2`, "has no JSON of a pull secret"},
		"the name of its file": {`~/pull-secret.json`, "has no JSON of a pull secret"},
	} {
		t.Run(name, func(t *testing.T) {
			expectProblem(t, bridge.PullSecretProblem(holding(bridge.PullSecretKey, c.text)), c.problem)
		})
	}
}

func FuzzContentsAreNeverQuoted(f *testing.F) {
	for _, seed := range []string{ed25519, sk, `{"auths": {"quay.io": {"auth": "dTpw"}}}`, `{"auths": 7777777}`, "-----BEGIN PRIVATE KEY-----", "ssh-rsa AAAA"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		secret := &corev1.Secret{Data: map[string][]byte{bridge.SSHKeyKey: text, bridge.PullSecretKey: text}}
		for _, problem := range []string{bridge.SSHKeyProblem(secret), bridge.PullSecretProblem(secret)} {
			for word := range strings.FieldsSeq(string(text)) {
				if len(word) > 4 && strings.Contains(problem, word) && !strings.Contains(allProblems, word) {
					t.Errorf("%q quotes %q", problem, word)
				}
			}
		}
	})
}

// allProblems are all texts that may be reported; they contain nothing of a Secret.
var allProblems = strings.Join([]string{
	bridge.SSHKeyProblem(holding("", "")), bridge.SSHKeyProblem(holding(bridge.SSHKeyKey, "x")), bridge.SSHKeyProblem(holding(bridge.SSHKeyKey, "PRIVATE KEY-----")),
	bridge.PullSecretProblem(holding("", "")), bridge.PullSecretProblem(holding(bridge.PullSecretKey, "x")), bridge.PullSecretProblem(holding(bridge.PullSecretKey, "{}")),
}, "\n")

func holding(key, text string) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{key: []byte(text)}}
}

func expectProblem(t *testing.T, got, begins string) {
	t.Helper()
	g := NewWithT(t)
	if begins == "" {
		g.Expect(got).To(BeEmpty())
		return
	}
	g.Expect(got).To(HavePrefix(begins))
	g.Expect(got).To(ContainSubstring("; "), "what would do")
	g.Expect(got).NotTo(ContainSubstring("hunter2"))
}
