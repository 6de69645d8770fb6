package bounded

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/unroutable"
)

// Why says why a hosted API is not reached, in words that do not change between tries. It quotes no errors of Go's net, which have
// ephemeral ports.
func Why(err error, access kubeconfig.Access) string {
	var (
		status    *apierrors.StatusError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		verifying *tls.CertificateVerificationError
		name      *net.DNSError
		operation *net.OpError
		number    syscall.Errno
		timeout   net.Error
	)
	for _, ours := range []error{ErrNoKubernetes, errHasty, errSlow, errEndless, errLarge, errPages, errShare, ErrTooMuch, unroutable.ErrUnroutable} { // some before ErrTooMuch match it
		if errors.Is(err, ours) {
			return ours.Error()
		}
	}
	switch {
	case apierrors.IsUnauthorized(err):
		return "it refuses the kubeconfig's credentials"
	case errors.As(err, &status):
		return "it answers " + Said(status, access)
	case errors.As(err, &authority):
		return "its certificate is not signed by the kubeconfig's CA"
	case errors.As(err, &hostname):
		return "its certificate is for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet"
	case errors.As(err, &verifying):
		return "its certificate is not valid"
	case errors.As(err, &operation) && operation.Op == "remote error":
		return "it ends the TLS handshake"
	case errors.As(err, &name):
		return "its name is not known"
	case errors.As(err, &number):
		return number.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer"
	}
	return "the connection is cut"
}

// mostWords limits the bytes that we quote of a hosted cluster.
const mostWords = 300

// Said is an API server's own message as one line, cut to mostWords, and without the token, in case it is sent back.
func Said(status *apierrors.StatusError, access kubeconfig.Access) string {
	words := status.ErrStatus.Message
	if access.Token != "" {
		words = strings.ReplaceAll(words, access.Token, "(token)")
	}
	words = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(words, " "))
	if len(words) > mostWords {
		words = strings.ToValidUTF8(words[:mostWords], "") + "…"
	}
	return fmt.Sprintf("%d: %s", status.ErrStatus.Code, words)
}
