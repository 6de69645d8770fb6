package cmd

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

// inTerminal runs a script in a terminal of so many columns, and returns what the terminal is sent.
func (s shell) inTerminal(columns uint16, script string, env ...string) string {
	s.t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	s.Expect(err).NotTo(HaveOccurred())
	defer terminal.Close()
	fd := int(terminal.Fd())
	s.Expect(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)).To(Succeed())
	s.Expect(unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})).To(Succeed())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	s.Expect(err).NotTo(HaveOccurred())
	other, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	s.Expect(err).NotTo(HaveOccurred())
	c := exec.CommandContext(s.t.Context(), "bash", "-c", script)
	c.Dir, c.Env, c.Stdin, c.Stdout, c.Stderr = s.dir, append(s.env, env...), other, other, other
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s.Expect(c.Start()).To(Succeed())
	s.Expect(other.Close()).To(Succeed())
	sent, _ := io.ReadAll(terminal) // it ends with EIO, as nobody has the other end any more
	s.Expect(c.Wait()).To(Succeed())
	return strings.ReplaceAll(string(sent), "\r\n", "\n")
}

// A terminal is sent what a pipe is: no colours, which NO_COLOR would take away, and whole lines, whatever its width. Where a line does not fit it is
// the terminal that wraps it, and a command that is copied from there is in one piece.
func TestATerminalIsSentWhatAPipeIs(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	s.runs(drawnInfra + "ready False PoolExhausted")
	for _, command := range []string{"status c1 -n clusters", "diagnose c1 -n clusters", "check"} {
		script := "oooi " + command + " || true"
		piped := s.runs(script)
		s.Expect(piped).NotTo(ContainSubstring("\x1b"))
		s.Expect(s.inTerminal(40, script, "TERM=xterm-256color", "NO_COLOR=1")).To(Equal(piped), command)
		s.Expect(s.inTerminal(200, script, "TERM=xterm-256color")).To(Equal(piped), command)
	}
}
