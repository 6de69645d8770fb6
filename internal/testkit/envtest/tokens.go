package envtest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
)

const collector = "collector"

// makeTokens makes a bearer token for each user who sends many requests, and a file of them for --token-auth-file. The operator has a token in
// a cluster, too; of a client with a certificate kube-apiserver verifies the CA's signature with each request, for which it took a twentieth of
// its processor time (docs/adr/0012-tests-side-by-side.md).
func (c *Cluster) makeTokens() (path string, err error) {
	c.tokens = map[string]string{}
	file, err := os.CreateTemp("", "tokens")
	if err != nil {
		return "", err
	}
	for user, groups := range map[string]string{collector: ",system:masters", Managers[0].Name: "", Managers[1].Name: ""} {
		c.tokens[user] = rand.Text()
		_, writing := fmt.Fprintf(file, "%s,%s,%[2]s%s\n", c.tokens[user], user, groups)
		err = errors.Join(err, writing)
	}
	return file.Name(), errors.Join(err, file.Close())
}

// as is a user's configuration.
func (c *Cluster) as(user string) *rest.Config {
	config := rest.AnonymousClientConfig(c.Admin)
	config.BearerToken = c.tokens[user]
	return config
}
