package kubeconfig

// kubeconfig has every field of client-go's clientcmd/api/v1, so that a rule can refuse those that we do not use.
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	Preferences    map[string]any `json:"preferences"`
	CurrentContext string         `json:"current-context"`
	Contexts       []struct {
		Name    string     `json:"name"`
		Context contextual `json:"context"`
	} `json:"contexts"`
	Clusters []struct {
		Name    string  `json:"name"`
		Cluster cluster `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string `json:"name"`
		User user   `json:"user"`
	} `json:"users"`
	Extensions []any `json:"extensions"`
}

type contextual struct {
	Cluster    string `json:"cluster"`
	User       string `json:"user"`
	Namespace  string `json:"namespace"`
	Extensions []any  `json:"extensions"`
}

type cluster struct {
	Server             string `json:"server"`
	CAData             []byte `json:"certificate-authority-data"`
	CAFile             string `json:"certificate-authority"`
	ProxyURL           string `json:"proxy-url"`
	SkipVerify         bool   `json:"insecure-skip-tls-verify"`
	ServerName         string `json:"tls-server-name"`
	DisableCompression bool   `json:"disable-compression"`
	Extensions         []any  `json:"extensions"`
}

type user struct {
	CertificateData []byte         `json:"client-certificate-data"`
	KeyData         []byte         `json:"client-key-data"`
	Token           string         `json:"token"`
	CertificateFile string         `json:"client-certificate"`
	KeyFile         string         `json:"client-key"`
	TokenFile       string         `json:"tokenFile"`
	As              string         `json:"as"`
	AsUID           string         `json:"as-uid"`
	AsGroups        []string       `json:"as-groups"`
	AsExtra         map[string]any `json:"as-user-extra"`
	Username        string         `json:"username"`
	Password        string         `json:"password"`
	AuthProvider    any            `json:"auth-provider"`
	Exec            any            `json:"exec"`
	Extensions      []any          `json:"extensions"`
}

// chooses says whether the current context names exactly one cluster and one user. Of two with one name, client-go takes the last.
func (k *kubeconfig) chooses() bool {
	contexts, clusters, users := 0, 0, 0
	var at contextual
	for _, c := range k.Contexts {
		if c.Name == k.CurrentContext {
			at, contexts = c.Context, contexts+1
		}
	}
	for _, c := range k.Clusters {
		if c.Name == at.Cluster {
			clusters++
		}
	}
	for _, u := range k.Users {
		if u.Name == at.User {
			users++
		}
	}
	return k.CurrentContext != "" && contexts == 1 && clusters == 1 && users == 1
}

// chosen are the cluster and the user of the current context; the kubeconfig must have passed chooses.
func (k *kubeconfig) chosen() (c cluster, u user) {
	var at contextual
	for _, named := range k.Contexts {
		if named.Name == k.CurrentContext {
			at = named.Context
		}
	}
	for _, named := range k.Clusters {
		if named.Name == at.Cluster {
			c = named.Cluster
		}
	}
	for _, named := range k.Users {
		if named.Name == at.User {
			u = named.User
		}
	}
	return c, u
}
