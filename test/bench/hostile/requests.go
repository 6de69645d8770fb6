package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/test/bench/internal/objects"
)

const (
	keysOfCard = 10
	strangers  = 80  // hosts that are not DPUs
	mostNames  = 64  // in a well-formed request
	stay       = 500 // requests made during the time that one exists
)

// firstCSR is that of a host's kubelet, with a new key.
func firstCSR(host string) (*certv1.CertificateSigningRequest, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	return objects.CSR(key, host, host)
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// sign makes a few hundred requests, because each costs a signature: several keys for each card, and strangers, which are not DPUs.
func (e *evil) sign() error {
	for i := range keysOfCard {
		for n, card := range e.cards {
			r, err := bootstrapCSR(host(card))
			if n < e.joined && i%2 == 0 {
				r, err = servingCSR(card, []int{2, mostNames}[i/2%2])
			}
			if err != nil {
				return err
			}
			e.signed = append(e.signed, *r)
		}
	}
	for i := range e.strangers {
		r, err := bootstrapCSR(fmt.Sprintf("stranger-%d", i))
		if err != nil {
			return err
		}
		e.signed = append(e.signed, *r)
	}
	return nil
}

func bootstrapCSR(host string) (*certv1.CertificateSigningRequest, error) {
	r, err := firstCSR(host)
	if err == nil {
		r.Spec.Username, r.Spec.Groups = objects.Bootstrapper.UserName, objects.Bootstrapper.Groups
	}
	return r, err
}

// servingCSR is that of a card's Node, with this many names.
func servingCSR(card, count int) (*certv1.CertificateSigningRequest, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	name := "system:node:" + host(card)
	asks := &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{"system:nodes"}, CommonName: name}, DNSNames: []string{host(card)}}
	for i := range count - 1 {
		asks.IPAddresses = append(asks.IPAddresses, net.ParseIP(addressOf(card, i)))
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, asks, key)
	return &certv1.CertificateSigningRequest{Spec: certv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certv1.KubeletServingSignerName,
		Usages:   []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageServerAuth},
		Username: name, Groups: []string{"system:nodes", "system:authenticated"},
	}}, err
}

// certificateRequest with a number, created now.
func (e *evil) certificateRequest(number, version int) certv1.CertificateSigningRequest {
	r := e.signed[number%len(e.signed)]
	r.Name, r.ResourceVersion, r.CreationTimestamp = fmt.Sprintf("csr-%d", number), fmt.Sprint(version), metav1.Now()
	return r
}

func (e *evil) pending(number, version int) string {
	return text(e.certificateRequest(number, version))
}

func (e *evil) approved(number, version int) string {
	r := e.certificateRequest(number, version)
	r.Status.Conditions = []certv1.CertificateSigningRequestCondition{{Type: certv1.CertificateApproved, Status: corev1.ConditionTrue, LastUpdateTime: metav1.Now()}}
	return text(r)
}

// nextRequest is a new, changed or deleted request, or one that was deleted after its approval: without that approval, the host's next one
// may get one.
func (e *evil) nextRequest(version int) event {
	select {
	case next := <-e.answered:
		return next
	default:
	}
	switch version % 3 {
	case 0:
		return event{"ADDED", e.pending(int(e.newest.Add(1)), version)}
	case 1:
		return event{"MODIFIED", e.pending(int(e.newest.Load()), version)}
	}
	return event{"DELETED", e.approved(max(0, int(e.newest.Load())-stay), version)}
}

// request answers a read of one request.
func (e *evil) request(out *sayer, r *http.Request) {
	e.read.Add(1)
	if number, ok := e.numberIn(r); ok {
		out.say(e.pending(number, 1))
		return
	}
	out.refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
}

func (e *evil) numberIn(r *http.Request) (number int, ok bool) {
	_, err := fmt.Sscanf(r.PathValue("name"), "csr-%d", &number)
	return number, err == nil && number >= 0 && len(e.signed) > 0
}

// approval accepts an approval, or refuses it, or claims to.
func (e *evil) approval(out *sayer, r *http.Request) {
	number, ok := e.numberIn(r)
	if !ok {
		out.refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	e.taken.Add(1)
	switch number % 11 { // 11 shares no divisor with the number of signed requests, so it is not always the same hosts
	case 9:
		out.refuse(http.StatusConflict, metav1.StatusReasonConflict)
	case 10: // accepted nevertheless, as the watch shows later
		out.refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError)
		time.AfterFunc(200*time.Millisecond, func() {
			e.answer(event{"MODIFIED", e.approved(number, 1)})
			e.answer(event{"DELETED", e.approved(number, 1)})
		})
	default:
		out.say(e.approved(number, 1))
		e.answer(event{"DELETED", e.approved(number, 1)})
	}
}

// answer sends an event to the watch, unless too many wait already.
func (e *evil) answer(next event) {
	select {
	case e.answered <- next:
	default:
	}
}
