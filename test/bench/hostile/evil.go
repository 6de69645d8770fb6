package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/test/bench/internal/objects"
)

const (
	fat          = 8 << 20 // bytes of an object, of which a page has one
	manyRequests = 20000
	changes      = 500 // a second, of whatever is watched
)

// evil is the API server of a hosted cluster whose administrator wants the manager to serve nobody else.
type evil struct {
	trust []byte
	// endless and fat are the resources whose lists never end, and whose objects are as large as an API server stores and larger.
	endless, fat []string

	// services are how many it has, with the labels of Infra evil3.
	services int
	quiet    bool

	texts, requests [][]byte     // of Services, and of CSRs
	said            atomic.Int64 // bytes
	asked           atomic.Int64
}

// startEvil serves at an address, by a name.
func startEvil(ctx context.Context, address, name string, e *evil) error {
	certificate, key, err := envtest.SelfSigned(name)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	e.trust = certificate
	if err := e.prepare(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: e, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(discard{}, "", 0)}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go server.ServeTLS(listener, "", "") //nolint:errcheck // it ends with us
	return nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// prepare what is said again and again.
func (e *evil) prepare() error {
	for i := range e.services {
		text, err := json.Marshal(corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", i), Namespace: "openshift-ingress", ResourceVersion: "1", Labels: map[string]string{names.LabelInfra: "evil3", names.LabelInfraNamespace: objects.Namespace}},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: fmt.Sprintf("172.31.%d.%d", i/250, i%250), Ports: []corev1.ServicePort{{Port: 443}}},
		})
		if err != nil {
			return err
		}
		e.texts = append(e.texts, text)
	}
	var signed []*certv1.CertificateSigningRequest // some hosts', as each takes a signature
	for i := range 200 {
		r, err := firstCSR(fmt.Sprintf("evil-%d", i))
		if err != nil {
			return err
		}
		r.ResourceVersion, r.CreationTimestamp = "1", metav1.Now()
		r.Spec.Username, r.Spec.Groups = objects.Bootstrapper.UserName, objects.Bootstrapper.Groups
		signed = append(signed, r)
	}
	for i := range manyRequests {
		r := signed[i%len(signed)]
		r.Name = fmt.Sprintf("csr-%d", i)
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		e.requests = append(e.requests, text)
	}
	return nil
}

// firstCSR of a host's kubelet, by a key of its own.
func firstCSR(host string) (*certv1.CertificateSigningRequest, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return objects.CSR(key, host, host)
}

// ServeHTTP implements http.Handler.
func (e *evil) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	e.asked.Add(1)
	to.Header().Set("Content-Type", "application/json")
	out := &sayer{to: to, said: &e.said}
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	switch {
	case e.quiet && r.URL.Query().Get("watch") == "true":
		<-r.Context().Done()
	case e.quiet && r.URL.Path != "/version":
		out.say(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	case r.URL.Path == "/version":
		out.say(`{"major":"1","minor":"33"}`)
	case r.URL.Query().Get("watch") == "true":
		e.watch(r.Context(), out, resource)
	default:
		e.list(out, resource)
	}
}

// sayer writes until the other side has gone.
type sayer struct {
	to   http.ResponseWriter
	said *atomic.Int64
	gone bool
}

func (s *sayer) say(text string) {
	if s.gone {
		return
	}
	n, err := s.to.Write([]byte(text))
	s.said.Add(int64(n))
	s.gone = err != nil
}

func has(all []string, resource string) bool {
	for _, one := range all {
		if one == resource || one == "*" {
			return true
		}
	}
	return false
}

func (e *evil) list(out *sayer, resource string) {
	more := ""
	if has(e.endless, resource) {
		more = "more"
	}
	out.say(fmt.Sprintf(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":%q},"items":[`, more))
	switch {
	case has(e.fat, resource):
		out.say(`{"metadata":{"name":"fat","resourceVersion":"1","annotations":{"a":"`)
		for range fat / (64 << 10) {
			out.say(strings.Repeat("x", 64<<10))
		}
		out.say(`"}}}`)
	case resource == "services":
		e.all(out, e.texts)
	case resource == "certificatesigningrequests":
		e.all(out, e.requests)
	default:
		for i := range 250 {
			if i > 0 {
				out.say(",")
			}
			out.say(fmt.Sprintf(`{"metadata":{"name":"o%d","namespace":"n","resourceVersion":"1"}}`, i))
		}
	}
	out.say(`]}`)
}

func (e *evil) all(out *sayer, objects [][]byte) {
	for i, o := range objects {
		if i > 0 {
			out.say(",")
		}
		out.say(string(o))
	}
}

// watch tells of a change again and again.
func (e *evil) watch(ctx context.Context, out *sayer, resource string) {
	tick := time.NewTicker(time.Second / changes)
	defer tick.Stop()
	for n := 2; !out.gone; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		object := fmt.Sprintf(`{"metadata":{"name":"o%d","namespace":"n","resourceVersion":"1"}}`, n%250)
		switch resource {
		case "services":
			object = string(e.texts[n%len(e.texts)])
		case "certificatesigningrequests":
			object = strings.Replace(string(e.requests[n%manyRequests]), `"name":"csr-`, fmt.Sprintf(`"name":"new-%d-`, n), 1)
		}
		out.say(fmt.Sprintf(`{"type":"MODIFIED","object":%s}`, strings.Replace(object, `"resourceVersion":"1"`, fmt.Sprintf(`"resourceVersion":"%d"`, n), 1)))
		if f, ok := out.to.(http.Flusher); ok {
			f.Flush()
		}
	}
}
