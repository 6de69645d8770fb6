package ignition

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// failure says why there is no ignition: a stable reason, and a sentence that does not change between tries.
type failure struct{ Reason, Message string }

func waiting(format string, args ...any) *failure {
	return &failure{"WaitingForIgnition", fmt.Sprintf(format, args...)}
}

func unreachable(want bridge.Download, format string, args ...any) *failure {
	return &failure{"IgnitionServerUnreachable", fmt.Sprintf(format, args...) + "; see the pods and Services of ignition-server in namespace " + want.Token.Namespace}
}

// fetch downloads ignition. It follows no redirect and asks no proxy, and connects to nothing but the servers that want names.
func fetch(ctx context.Context, dial bounded.Dial, want bridge.Download, ca, token []byte) ([]byte, *failure) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, waiting("Secret %s has no certificate in tls.crt", want.CA)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	transport := &http.Transport{ // whose Proxy is nil: none is asked
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return first(ctx, dial, network, want.Servers)
		},
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, ServerName: want.Host},
	}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request(ctx, want, token))
	if err != nil {
		return nil, unreachable(want, "the ignition server %s is not reached: %s", want.Host, said(err))
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, refusal(want, response.StatusCode)
	case err != nil:
		return nil, unreachable(want, "the ignition server's answer was cut off: %s", said(err))
	case len(content) > most:
		return nil, &failure{"IgnitionTooLarge", fmt.Sprintf("the ignition of NodePool %s has more than %d MiB: remove what DPUs do not need from its configuration", want.NodePool, most>>20)}
	}
	return content, nil
}

// request has the headers of a real node's (hypershift: nodepool/token.go, ignConfig).
func request(ctx context.Context, want bridge.Download, token []byte) *http.Request {
	r := (&http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "https", Host: net.JoinHostPort(want.Host, "443"), Path: "/ignition"}, Host: want.Host, Header: http.Header{}}).WithContext(ctx)
	r.Header.Set("Authorization", "Bearer "+base64.StdEncoding.EncodeToString(token))
	r.Header.Set("NodePool", want.NodePool.String())
	r.Header.Set("TargetConfigVersionHash", want.Hash)
	return r
}

// refusal tells a token that the server has nothing for yet from one that it refuses.
func refusal(want bridge.Download, status int) *failure {
	switch {
	case status == http.StatusUnauthorized:
		return &failure{"IgnitionTokenRefused", fmt.Sprintf("the ignition server refuses the token in Secret %s (401): see that Secret, unless HyperShift is replacing it", want.Token)}
	case status == http.StatusNetworkAuthenticationRequired:
		return waiting("the ignition server has not rendered the configuration of NodePool %s yet (511)", want.NodePool)
	case status >= http.StatusInternalServerError:
		return &failure{"IgnitionServerUnreachable", fmt.Sprintf("the ignition server fails (%d): see the logs of ignition-server in namespace %s", status, want.Token.Namespace)}
	}
	return &failure{"IgnitionServerUnreachable", fmt.Sprintf("what answers as ignition server is none (%d): see Service and Route in namespace %s", status, want.Token.Namespace)}
}

// first connects to the first of some servers that accepts.
func first(ctx context.Context, dial bounded.Dial, network string, servers []string) (net.Conn, error) {
	var failed []string
	for _, server := range servers {
		dialling, cancel := context.WithTimeout(ctx, within/10)
		conn, err := dial(dialling, network, server)
		cancel()
		if err == nil {
			return conn, nil
		}
		failed = append(failed, fmt.Sprintf("%s: %v", server, err))
	}
	return nil, errors.New(strings.Join(failed, "; "))
}

// varying is what errors of Go's net and crypto/x509 have that differs between tries: our end of a connection, and the time.
var varying = regexp.MustCompile(`\S+:\d+->|current time \S+ `)

// said leaves the URL out, too.
func said(err error) string {
	if of, is := errors.AsType[*url.Error](err); is {
		err = of.Err
	}
	return varying.ReplaceAllString(err.Error(), "")
}
