// testapp is both ends of the lab's network checks.
//
//	testapp serve [ADDR]        HTTP on ADDR (:8080) answers with who it is and who asks
//	testapp serve ADDR TLSADDR CERT KEY   the same, and with that certificate on TLSADDR
//	testapp get URL             prints the answer; fails after 3 s
//	testapp tcp ADDR            "open", "refused" or "silent" (2 s)
//	testapp tls ADDR NAME CA    handshake as a client that trusts the PEM file CA; prints the certificate's names
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("testapp: ")
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 0:
		return serve(":8080")
	case args[0] == "serve" && len(args) == 1:
		return serve(":8080")
	case args[0] == "serve" && len(args) == 2:
		return serve(args[1])
	case args[0] == "serve" && len(args) == 5:
		go func() { log.Fatal(http.ListenAndServeTLS(args[2], args[3], args[4], nil)) }()
		return serve(args[1])
	case args[0] == "get" && len(args) == 2:
		return get(args[1])
	case args[0] == "tcp" && len(args) == 2:
		return dial(args[1])
	case args[0] == "tls" && len(args) == 4:
		return handshake(args[1], args[2], args[3])
	}
	return fmt.Errorf("unknown arguments %q", args)
}

func serve(addr string) error {
	exitOnSIGTERM()
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "host=%s client=%s\n", host, r.RemoteAddr)
	})
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	log.Printf("ready on %s", listener.Addr())
	return http.Serve(listener, nil)
}

// exitOnSIGTERM is needed as PID 1 of a container, for which the kernel has no default action.
func exitOnSIGTERM() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		os.Exit(0)
	}()
}

func get(url string) error {
	client := http.Client{Timeout: 3 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}

func dial(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, 2*time.Second)
	switch {
	case err == nil:
		fmt.Println("open")
		return conn.Close()
	case errors.Is(err, syscall.ECONNREFUSED):
		fmt.Println("refused")
	default:
		fmt.Println("silent")
	}
	return err
}

func handshake(addr, name, caFile string) error {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s: no certificate in it", caFile)
	}
	dialer := &net.Dialer{Timeout: 3 * time.Second}
	conn, err := tls.DialWithDialer(dialer, "tcp", addr, &tls.Config{RootCAs: roots, ServerName: name})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	leaf := conn.ConnectionState().PeerCertificates[0]
	fmt.Println(leaf.Subject, leaf.DNSNames, leaf.IPAddresses)
	return nil
}
