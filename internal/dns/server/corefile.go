package server

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/coredns/caddy"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/log"
)

// ServeCorefile runs CoreDNS with an unchanged Corefile and the plugins that are compiled in: bind, cache, errors, forward, hosts, log, and
// prometheus. This is how the seed runs CoreDNS; none of our records are in it.
func ServeCorefile(ctx context.Context, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the Corefile: %w", err)
	}
	instance, err := caddy.Start(caddy.CaddyfileInput{Filepath: path, Contents: content, ServerTypeName: "dns"})
	if err != nil {
		return fmt.Errorf("serving %s: %w", path, err)
	}
	<-ctx.Done()
	return errors.Join(append(instance.ShutdownCallbacks(), instance.Stop())...)
}
