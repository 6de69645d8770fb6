package server

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	mdns "github.com/miekg/dns"
	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/testkit/ports"
)

func TestACorefileIsServedAsItStands(t *testing.T) {
	g := NewWithT(t)
	at := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), ports.Free(t))
	path := filepath.Join(t.TempDir(), "Corefile")
	g.Expect(os.WriteFile(path, fmt.Appendf(nil, ".:%d {\n bind 127.0.0.1\n errors\n cache 30\n hosts {\n  192.0.2.7 seed.example.org\n }\n}\n", at.Port()), 0o600)).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- ServeCorefile(ctx, path) }()
	g.Eventually(func() string {
		answer, err := mdns.Exchange(question("seed.example.org.", mdns.TypeA), at.String())
		if err != nil || len(answer.Answer) == 0 {
			return fmt.Sprint("no answer: ", err)
		}
		return answer.Answer[0].(*mdns.A).A.String()
	}, "5s").Should(Equal("192.0.2.7"))
	stop()
	g.Expect(<-ended).To(Succeed())
}

func TestAWrongCorefileIsAnError(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "Corefile")
	g.Expect(os.WriteFile(path, []byte(".:1 {\n kubernetes\n}\n"), 0o600)).To(Succeed())
	g.Expect(ServeCorefile(t.Context(), path)).To(MatchError(ContainSubstring("kubernetes")))
	g.Expect(ServeCorefile(t.Context(), path+".absent")).To(MatchError(ContainSubstring("reading the Corefile")))
}
