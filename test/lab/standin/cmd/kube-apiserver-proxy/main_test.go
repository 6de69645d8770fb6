package main

import (
	"io"
	"net"
	"testing"
)

func TestBytesPassAndSoDoesTheirEnd(t *testing.T) {
	api := listen(t)
	go func() { // answers with what it read, once the other side has closed
		connection, err := api.Accept()
		if err != nil {
			return
		}
		heard, _ := io.ReadAll(connection)
		connection.Write(append([]byte("heard "), heard...))
		connection.Close()
	}()
	proxy := listen(t)
	go serve(proxy, api.Addr().(*net.TCPAddr))

	client, err := net.Dial("tcp", proxy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(client)
	if err != nil || string(answer) != "heard hello" {
		t.Errorf("got %q, %v", answer, err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
