package cmd

import (
	"io"
	"testing"

	. "github.com/onsi/gomega"
)

func TestWhatCannotBeUnderstoodEndsWithTwo(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"nonsense"}, `unknown command "nonsense" for "oooi"; see oooi --help`},
		{[]string{"diagnos", "c1"}, `unknown command "diagnos" for "oooi"; did you mean diagnose?; see oooi --help`},
		{[]string{"bridge", "show", "b1", "-n", "clusters"}, `unknown command "show" for "oooi bridge"; see oooi bridge --help`},
		{[]string{"leases", "lst"}, `unknown command "lst" for "oooi leases"; did you mean list?; see oooi leases --help`},
		{[]string{"completion", "foo"}, `unknown command "foo" for "oooi completion"; see oooi completion --help`},
		{[]string{"completion", "bash", "x"}, `"x" is not expected: oooi completion bash`},
		{[]string{"completion", "zsh", "--nonsense"}, "unknown flag: --nonsense; see oooi completion zsh --help"},
		{[]string{"--nonsense"}, "unknown flag: --nonsense; see oooi --help"},
		{[]string{"dhcp", "--nonsense"}, "unknown flag: --nonsense; see oooi dhcp --help"},
		{[]string{"render", "--nonsense"}, "unknown flag: --nonsense; see oooi render --help"},
		{[]string{"diff", "-f", "a.yaml", "b.yaml"}, "b.yaml: give each file with -f"},
		{[]string{"render", "-f", "a.yaml", "b.yaml"}, "b.yaml: give each file with -f"},
		{[]string{"render"}, `required flag(s) "filename" not set`},
		{[]string{"ui", "--port", "99999"}, `invalid argument "99999" for "--port" flag: write a whole number from 0 to 65535; see oooi ui --help`},
		{[]string{"move", "c1", "--cut-over=y"}, `invalid argument "y" for "--cut-over" flag: write true or false; see oooi move --help`},
		{[]string{"bridge", "create", "b1", "--flannel-enabled=y"}, `invalid argument "y" for "--flannel-enabled" flag: write true or false; see oooi bridge create --help`},
		{[]string{"bridge", "create", "b1", "--host-prefix", "a"}, `invalid argument "a" for "--host-prefix" flag: write a whole number below 2147483648; see oooi bridge create --help`},
		{[]string{"ui", "c1"}, `"c1" is not expected: oooi ui [flags]`},
		{[]string{"bridge", "upgrade", "b1", "--to", ""}, `--to "" is no release image: write its registry, and its tag or digest, e.g. quay.io/openshift-release-dev/ocp-release:4.20.5-multi`},
		{[]string{"bridge", "upgrade", "b1", "--to", "4.20.5"}, `--to "4.20.5" is no release image: write its registry, and its tag or digest, e.g. quay.io/openshift-release-dev/ocp-release:4.20.5-multi`},
		{[]string{"bridge", "upgrade", "b1", "--to", "quay.io/ocp/release"}, `--to "quay.io/ocp/release" is no release image: write its registry, and its tag or digest, e.g. quay.io/openshift-release-dev/ocp-release:4.20.5-multi`},
		{[]string{"status", ""}, "give one name: oooi status INFRA [flags]"},
		{[]string{"leases", "show", ""}, "give one name: oooi leases show IP|MAC|NAME [flags]"},
		{[]string{"status", "c1", "c2"}, "give one name, not 2 (c1, c2): oooi status INFRA [flags]"},
		{[]string{"render", "-f", "/absent"}, "stat /absent: no such file or directory"},
		{[]string{"render", "-f", "testdata/moving/infra.yaml", "-o", "text"}, "--output text: write yaml or json"},
	} {
		root := Root()
		root.SetArgs(c.args)
		root.SetOut(io.Discard)
		err := root.Execute()
		NewWithT(t).Expect(err).To(MatchError(c.says))
		NewWithT(t).Expect(ExitCode(err)).To(Equal(unusable), c.says)
	}
}
