package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"time"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

const (
	handshakeWithin = 200 * time.Millisecond
	backend         = nodeIP + ":6443"
	proxyAt         = vip + ":6443"
	// crowd is how many connections a hostile guest wants; one that was closed it opens again after as long as Envoy waits for a hello.
	crowd, crowdAgain = 10_000, 5 * time.Second
)

var proxy = service{
	name: names.Proxy,
	server: func() string {
		return `apiVersion: hostedcluster.densityops.com/v1alpha1
kind: ProxyServer
metadata: {generateName: flooded-, namespace: ` + namespace + `}
spec:
  networkConfig: {networkAttachmentDefinition: vlan, serverIP: ` + vip + `}
  backends: [{name: api, protocol: TLS, port: 6443, hostname: ` + api + `, targetAddresses: ["` + backend + `"]}]
`
	},
	attacks: []attack{{"10000 silent connections", sayNothing}, {"10000 half hellos", sayHalf}, {"10000 connections that read nothing", readNothing}},
	begin:   usesProxy,
	peer: func() peer { // as many connections as our Envoy has within its limit of memory
		return haproxy("4883", "frontend vlan\n bind "+proxyAt+"\n tcp-request inspect-delay 5s\n tcp-request content accept if { req_ssl_hello_type 1 }\n"+
			" use_backend api if { req_ssl_sni -i "+api+" }\nbackend api\n server one "+backend+"\n")
	},
}

// usesProxy starts a backend. Another guest shakes hands with it, each time on a new connection.
func usesProxy(ctx context.Context, p *pod) (usage, error) {
	certificate, key, err := envtest.SelfSigned(api)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	if err := p.Enter(node, func() error {
		listener, err := tls.Listen("tcp", backend, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
		if err == nil {
			context.AfterFunc(ctx, func() { _ = listener.Close() })
			go echo(listener)
		}
		return err
	}); err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	config := &tls.Config{RootCAs: trusted, ServerName: api, MinVersion: tls.VersionTLS12}
	return func(ctx context.Context, length time.Duration) ([]*waits, error) {
		return p.inTurn(ctx, length, 50*time.Millisecond, way{"a TLS handshake", handshakeWithin, func() error {
			conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", proxyAt, config)
			if err == nil {
				err = conn.Close()
			}
			return err
		}})
	}, nil
}

func echo(from net.Listener) {
	for {
		conn, err := from.Accept()
		if err != nil {
			return // it is closed
		}
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn) // until the client is gone
		}()
	}
}

func sayNothing(ctx context.Context) (string, error) {
	return occupy(ctx, crowd, crowdAgain, proxyAt, untilClosed), nil
}

func sayHalf(ctx context.Context) (string, error) {
	hello, err := clientHello()
	if err != nil {
		return "", err
	}
	return occupy(ctx, crowd, crowdAgain, proxyAt, func(conn net.Conn) {
		if _, err := conn.Write(hello[:len(hello)/2]); err == nil {
			untilClosed(conn)
		}
	}), nil
}

// readNothing of what the backend sends back, so that it, too, reads no more.
func readNothing(ctx context.Context) (string, error) {
	return occupy(ctx, crowd, crowdAgain, proxyAt, func(conn net.Conn) {
		secured := tls.Client(conn, &tls.Config{ServerName: api, InsecureSkipVerify: true}) //nolint:gosec // an attacker trusts nobody
		for block := make([]byte, 1<<14); ; {
			if _, err := secured.Write(block); err != nil {
				return
			}
		}
	}), nil
}

func untilClosed(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) } // by either side

// clientHello is the first that a client sends.
func clientHello() ([]byte, error) {
	here, there := net.Pipe()
	defer there.Close()
	go func() {
		defer here.Close()
		_ = tls.Client(here, &tls.Config{ServerName: api, MinVersion: tls.VersionTLS12}).Handshake() // nobody answers
	}()
	octets := make([]byte, 1<<14)
	n, err := there.Read(octets)
	if n < 100 {
		err = errors.Join(err, errors.New("no ClientHello"))
	}
	return octets[:n], err
}
