package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/proxy/bootstrap"
	"github.com/cldmnky/oooi/internal/testkit/procfs"
)

// Clients that read well until all are connected, and then nothing, have the largest windows and all buffers full.
func TestConnectionsThatAreFullFitIntoTheMemoryThatTheyAreCountedWith(t *testing.T) {
	const many, memory = 200, 1 << 30
	g := NewWithT(t)
	most, err := bootstrap.Limits{Descriptors: 1 << 20, MemoryBytes: memory}.Connections()
	g.Expect(err).NotTo(HaveOccurred())
	var sent atomic.Int64
	flood := newPlainTarget(t, "flood", func(conn net.Conn) {
		_ = conn.(*net.TCPConn).SetWriteBuffer(64 << 10) // the target's memory is not what is looked at
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			return // a health check
		}
		for block := make([]byte, 64<<10); ; sent.Add(1) {
			if _, err := conn.Write(block); err != nil {
				return
			}
		}
	})
	port := freePort(t)
	l := newLab(t, v1alpha1.ProxyBackend{Name: "flood", Port: port, TargetAddresses: []string{flood.address()}})
	base := anonymous(t, l.envoy.Process.Pid)
	for n := range many {
		conn, err := from(fmt.Sprintf("127.0.%d.%d", 1+n/250, 1+n%250)).Dial("tcp", at(port))
		g.Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		_, err = conn.Write([]byte{1})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(conn.SetReadDeadline(time.Now().Add(20 * time.Second))).To(Succeed())
		_, err = io.CopyN(io.Discard, conn, 2<<20)
		g.Expect(err).NotTo(HaveOccurred())
	}
	before := int64(-1)
	g.Eventually(func() int64 {
		more := sent.Load() - before
		before += more
		return more
	}, time.Minute, time.Second).Should(BeZero(), "no buffer takes more")
	own, kernels := anonymous(t, l.envoy.Process.Pid), inSockets(t, l.envoy.Process.Pid)
	t.Logf("%d connections: Envoy has %d KiB for each, and the kernel %d", many, (own-base)/many>>10, kernels/many>>10)
	g.Expect(base+most*(own-base+kernels)/many).To(BeNumerically("<=", memory), "of as many as there may be")
}

// anonymous is the memory of a process, in bytes, without its files.
func anonymous(t *testing.T, pid int) int64 {
	t.Helper()
	own, err := procfs.Memory(pid, procfs.Anonymous)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return own
}

// inSockets is the kernel's memory, in bytes, for what a process has received and not read, or written and not sent.
func inSockets(t *testing.T, pid int) int64 {
	t.Helper()
	listed, err := exec.Command("ss", "--tcp", "--numeric", "--memory", "--processes", "--no-header", "--oneline").CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), "%s", listed)
	own := regexp.MustCompile(fmt.Sprintf(`(?m)^.*pid=%d,.*$`, pid)).FindAll(listed, -1)
	return sum(t, own, regexp.MustCompile(`skmem:\(r(\d+),`)) + sum(t, own, regexp.MustCompile(`,w(\d+),`))
}

// sum adds up the numbers that a pattern finds in lines, in at least a hundred of them.
func sum(t *testing.T, lines [][]byte, pattern *regexp.Regexp) (all int64) {
	t.Helper()
	g := NewWithT(t)
	found := pattern.FindAllSubmatch(bytes.Join(lines, []byte("\n")), -1)
	g.Expect(len(found)).To(BeNumerically(">=", 100), "%s", pattern)
	for _, f := range found {
		n, err := strconv.ParseInt(string(f[1]), 10, 64)
		g.Expect(err).NotTo(HaveOccurred())
		all += n
	}
	return all
}
