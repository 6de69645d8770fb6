package cmd

import (
	"testing"
)

func TestACSRIsNotExplainedWithoutABridgeOrACluster(t *testing.T) {
	for says, args := range map[string][]string{
		"give one name":             {"--bridge", "dpu1"},
		`"bridge" not set`:          {"csr-1"},
		"write table or json":       {"csr-1", "--bridge", "dpu1", "-o", "yaml"},
		"unknown flag: --nonsense":  {"csr-1", "--nonsense"},
		"none is in the kubeconfig": {"csr-1", "--bridge", "dpu1"},
	} {
		t.Run(says, func(t *testing.T) { cannotBegin(t, says, append([]string{"csr", "explain"}, args...)) })
	}
}
