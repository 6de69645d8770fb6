package registry

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/net/http2"

	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// mostOfBody is the size up to which an answer is read: a release's manifests and config take some thousand octets.
const mostOfBody = 4 << 20

// errPlain means that a registry, or a redirection, is not protected by TLS: a login would be sent for all to read.
var errPlain = errors.New("it is not reached by HTTPS, and plain HTTP is not used")

// guarded asks by HTTPS only, and reads no answer beyond the size of most. took, if there is one, hears how much is read of answers.
type guarded struct {
	next http.RoundTripper
	most int64
	took func(octets int)
}

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, errPlain
	}
	answer, err := g.next.RoundTrip(request)
	if err != nil {
		return answer, err
	}
	body := io.LimitReader(answer.Body, g.most)
	if g.took != nil {
		body = heard{body, g.took}
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{named{body, request.URL.Host}, answer.Body}
	return answer, nil
}

// named is an answer whose errors name who sent it: a copy reads it where it writes elsewhere.
type named struct {
	io.Reader
	host string
}

func (n named) Read(b []byte) (int, error) {
	read, err := n.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = brokenOff{err, n.host}
	}
	return read, err
}

// brokenOff means that the answer of a host did not come to its end.
type brokenOff struct {
	error
	host string
}

func (b brokenOff) Unwrap() error { return b.error }

type heard struct {
	io.Reader
	took func(octets int)
}

func (h heard) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	h.took(n)
	return n, err
}

// why is the reason of a failure, and says it in words that do not change between tries: errors of Go's net have ephemeral ports.
func why(err error) (reason, text string) {
	var (
		said      *transport.Error
		noRelease errNoRelease
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		lookup    *net.DNSError
		number    syscall.Errno
		timeout   net.Error
	)
	reason = bridge.RegistryUnreachable
	switch {
	case errors.As(err, &noRelease):
		return bridge.InvalidReleaseImage, noRelease.Error()
	case errors.Is(err, errLogin):
		return bridge.RegistryUnauthorized, errLogin.Error()
	case errors.As(err, &said):
		return answered(said.StatusCode)
	case errors.As(err, &authority):
		text = "its certificate is signed by no CA that the operator trusts: on OpenShift, add it to the ConfigMap of additionalTrustedCA in image.config.openshift.io/cluster, elsewhere to the operator's SSL_CERT_FILE"
	case errors.As(err, &hostname):
		text = "its certificate is for another name"
	case errors.As(err, &invalid):
		text = "its certificate is not valid"
	case errors.As(err, &lookup):
		text = "its name is not known"
	case isCut(err):
		text = "the connection was cut"
	case errors.As(err, &number):
		text = number.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		text = "it does not answer in time"
	case errors.Is(err, errStalled):
		text = errStalled.Error()
	case errors.Is(err, errPlain):
		text = errPlain.Error()
	default:
		text = "it does not answer as a registry does"
	}
	return reason, text
}

// isCut says whether a connection ended within a request or its answer. How Go notices that depends on the moment, and on the version of HTTP.
func isCut(err error) bool {
	var (
		asked  *url.Error
		stream http2.StreamError
	)
	for _, ends := range []error{io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, ends) {
			return true
		}
	}
	return errors.As(err, &stream) || errors.As(err, &asked) && errors.Is(asked, io.EOF)
}

// answered is the reason for a status that a registry, or who gives its tokens, answers.
func answered(status int) (reason, text string) {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return bridge.RegistryUnauthorized, fmt.Sprintf("not allowed (%d)", status)
	case http.StatusNotFound:
		return bridge.ImageNotFound, "does not exist"
	}
	return bridge.RegistryUnreachable, fmt.Sprintf("the registry answers %d %s", status, http.StatusText(status))
}
