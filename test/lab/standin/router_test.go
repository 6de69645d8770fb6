package standin

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestRouterGoesByServerName(t *testing.T) {
	backend := func(name string) string {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, name) }))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	backends := Backends{Default: backend("api"), ByName: map[string]string{"ignition.example.com": backend("ignition"), "oauth.example.com": backend("oauth")}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go backends.accept(t.Context(), listener)

	for serverName, want := range map[string]string{"ignition.example.com": "ignition", "oauth.example.com": "oauth", "kubernetes.default.svc": "api", "": "api"} {
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{
			ServerName: serverName, InsecureSkipVerify: true, // the answer shows whose certificate it is
		}}}
		response, err := client.Get("https://" + listener.Addr().String())
		if err != nil {
			t.Fatalf("server name %q: %v", serverName, err)
		}
		got, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(got) != want {
			t.Errorf("server name %q reached %q (%v), want %q", serverName, got, err, want)
		}
	}
}

func FuzzHello(f *testing.F) {
	f.Add([]byte{22, 3, 1, 0, 1, 1})
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		client, server := net.Pipe()
		go func() { client.Write(sent); client.Close() }()
		read, _, err := peekHello(server)
		if err == nil && len(read) > len(sent) {
			t.Errorf("read %d bytes of %d", len(read), len(sent))
		}
		server.Close()
	})
}
