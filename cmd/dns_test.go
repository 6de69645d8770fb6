package cmd

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestDNSSaysWhichFlagIsWrong(t *testing.T) {
	for said, args := range map[string][]string{
		"say which DNSServer: --namespace and --dns-name, or --config-file, or --corefile":   {"--namespace", "tenants"},
		`invalid argument "here" for "--pod-ip" flag: ParseAddr("here"): unable to parse IP`: {"--config-file", "dns.yaml", "--pod-ip", "here"},
		"reading the Corefile: open absent: no such file or directory":                       {"--corefile", "absent"},
	} {
		t.Run(said, func(t *testing.T) {
			cmd := newDNSCommand()
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(args)
			NewWithT(t).Expect(cmd.Execute()).To(MatchError(said))
		})
	}
}
