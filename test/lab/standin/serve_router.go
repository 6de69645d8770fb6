package standin

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"
)

// Backends are where the router leads each server name, and a missing or unknown one.
type Backends struct {
	ByName  map[string]string
	Default string
}

func (b Backends) of(serverName string) string {
	if to, ok := b.ByName[serverName]; ok {
		return to
	}
	return b.Default
}

// ServeRouter passes TLS through by server name, as the HAProxy does that HyperShift runs when the API is published by Route: connections
// with an unknown name, or none, go to kube-apiserver.
func ServeRouter(ctx context.Context, backends Backends) error {
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", routerPort))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	failed := make(chan error, 1)
	go func() { failed <- serveReady(ctx, ":9444", "/haproxy_ready") }()
	go func() { failed <- backends.accept(ctx, listener) }()
	return <-failed
}

func (b Backends) accept(ctx context.Context, listener net.Listener) error {
	for {
		client, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			if err := b.pass(client); err != nil {
				slog.Info("connection refused", "from", client.RemoteAddr(), "because", err)
			}
		}()
	}
}

// pass connects one client to its backend, and sends the ClientHello first.
func (b Backends) pass(client net.Conn) error {
	defer client.Close()
	hello, serverName, err := peekHello(client)
	if err != nil {
		return err
	}
	server, err := net.DialTimeout("tcp", b.of(serverName), 5*time.Second)
	if err != nil {
		return err
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, io.MultiReader(bytes.NewReader(hello), client)) // it ends with either side; the other direction's end closes both
		_ = server.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(client, server)
	return nil
}

var errPeeked = errors.New("hello read")

// peekHello reads a ClientHello and returns the bytes read. TLS answers of this side never reach the client.
func peekHello(client net.Conn) (read []byte, serverName string, err error) {
	if err := client.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return nil, "", err
	}
	var seen bytes.Buffer
	silent := readOnly{Conn: client, from: io.TeeReader(client, &seen)}
	err = tls.Server(silent, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		serverName = hello.ServerName
		return nil, errPeeked
	}}).Handshake()
	if !errors.Is(err, errPeeked) {
		return nil, "", fmt.Errorf("reading the TLS hello: %w", err)
	}
	return seen.Bytes(), serverName, client.SetReadDeadline(time.Time{})
}

type readOnly struct {
	net.Conn
	from io.Reader
}

func (r readOnly) Read(p []byte) (int, error)  { return r.from.Read(p) }
func (r readOnly) Write(p []byte) (int, error) { return len(p), nil }
