package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/test/bench/internal/segment"
)

// peer is another's server of the same service, which is attacked in the same way. DIR in its configuration is a directory of its own.
type peer struct {
	name, config string
	command      []string // a path of the configuration follows
}

// startPeer starts it in place of our pod, without limits.
func startPeer(ctx context.Context, s *segment.Segment, of peer) (*pod, error) {
	p, config := &pod{Segment: s}, filepath.Join(s.Dir, "peer.conf")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(of.config, "DIR", s.Dir)), 0o600); err != nil {
		return p, err
	}
	return p, p.start(ctx, corev1.Container{Name: of.name, Command: append(of.command, config)}, 0)
}

func dnsmasq(config string) peer {
	return peer{"dnsmasq", "bind-interfaces\nno-resolv\nno-hosts\nuser=root\npid-file\n" + config, []string{"dnsmasq", "-k", "-C"}}
}

func haproxy(connections, config string) peer {
	return peer{"haproxy", "global\n maxconn " + connections + "\ndefaults\n mode tcp\n timeout connect 5s\n timeout client 1h\n timeout server 1h\n" + config, []string{"haproxy", "-db", "-f"}}
}
