package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

const (
	// mostNames of a certificate are told, and longestText of whatever a backend sent.
	mostNames   = 3
	longestText = 100
)

// judge says what is wrong with a certificate now, as a worker's Go would: first its dates, then its names; never the subject's common name.
func judge(c *x509.Certificate, host string, now time.Time) *v1alpha1.BackendFault {
	switch {
	case now.Before(c.NotBefore):
		return fault(v1alpha1.FaultNotYetValid, "its certificate is not valid before %s", c.NotBefore.UTC().Format(time.RFC3339))
	case now.After(c.NotAfter):
		return fault(v1alpha1.FaultExpired, "its certificate expired at %s", c.NotAfter.UTC().Format(time.RFC3339))
	case host != "" && c.VerifyHostname(host) != nil:
		return fault(v1alpha1.FaultAnotherName, "its certificate is for %s, not for %s", names(c), host)
	}
	return nil
}

// names are the first few of a certificate; what is no name of a host is quoted.
func names(c *x509.Certificate) string {
	var all []string
	for _, name := range c.DNSNames[:min(mostNames, len(c.DNSNames))] {
		if len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) > 0 {
			name = quoted(name)
		}
		all = append(all, name)
	}
	for _, ip := range c.IPAddresses[:min(mostNames-len(all), len(c.IPAddresses))] {
		all = append(all, ip.String())
	}
	if more := len(c.DNSNames) + len(c.IPAddresses) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	if len(all) == 0 {
		return "no name"
	}
	return strings.Join(all, ", ")
}

func quoted(s string) string { return strconv.QuoteToASCII(s[:min(longestText, len(s))]) }

// said is the same for the same failure: the errors of Go's net name the port that we happened to have.
func said(err error) string {
	var alert tls.AlertError
	var noTLS tls.RecordHeaderError
	var network *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Sprintf("nothing came within %s", patience)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was closed"
	case errors.As(err, &alert):
		return alert.Error()
	case errors.As(err, &noTLS):
		return "what answers speaks no TLS"
	case errors.As(err, &network):
		return quoted(network.Err.Error())
	}
	return quoted(err.Error())
}
