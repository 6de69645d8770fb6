// Command kube-apiserver-proxy is what a worker's pods reach at 172.20.0.1:6443, in place of HyperShift's HAProxy: it copies bytes to and
// from the published API, without a health check. It links nothing but the standard library, because an emulated processor has to load it.
package main

import (
	"flag"
	"log/slog"
	"net"
	"os"
	"time"
)

// idle is HAProxy's `timeout client` and `timeout server` in HyperShift's haproxy.cfg.
const idle = 10 * time.Minute

func main() {
	listen := flag.String("listen", "172.20.0.1:6443", "where pods dial")
	to := flag.String("to", "", "the API as workers reach it, host:port")
	flag.Parse()
	slog.Error("proxy ends", "error", run(*listen, *to))
	os.Exit(1)
}

func run(listen, to string) error {
	api, err := net.ResolveTCPAddr("tcp", to) // once, at the start, as HAProxy does
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	slog.Info("proxying", "from", listener.Addr(), "to", api)
	return serve(listener, api)
}

func serve(listener net.Listener, api *net.TCPAddr) error {
	for {
		client, err := listener.Accept()
		if err != nil {
			return err
		}
		go pass(client.(*net.TCPConn), api)
	}
}

func pass(client *net.TCPConn, api *net.TCPAddr) {
	defer func() { _ = client.Close() }()
	server, err := net.DialTimeout("tcp", api.String(), 10*time.Second)
	if err != nil {
		slog.Warn("API not reached", "error", err)
		return
	}
	defer server.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		forward(server.(*net.TCPConn), client)
	}()
	forward(client, server.(*net.TCPConn))
	<-done
}

// forward copies until from ends or is idle too long, and then closes to for writing.
func forward(to, from *net.TCPConn) {
	buffer := make([]byte, 32<<10)
	for {
		if err := from.SetReadDeadline(time.Now().Add(idle)); err != nil {
			break
		}
		n, err := from.Read(buffer)
		if _, writeErr := to.Write(buffer[:n]); writeErr != nil || err != nil {
			break
		}
	}
	_ = to.CloseWrite()
}
