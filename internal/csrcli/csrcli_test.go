package csrcli_test

import (
	"bytes"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/csrcli"
)

func TestAReportIsPrinted(t *testing.T) {
	g := NewWithT(t)
	again := time.Date(2026, 11, 21, 12, 4, 0, 0, time.UTC)
	r := csrcli.Report{
		Name: "csr-7x2kq", Bridge: "clusters/dpu1", Kind: csr.Bootstrap, Host: "dpu-1", Again: &again, Stopped: "Deleting: the bridge is being deleted",
		Rules: []csr.Verdict{
			{Name: "Signature", Passed: true, Because: "it is signed by the key in it"},
			{Name: "NodeInactive", Because: `Node "dpu-1" is not Ready, but its kubelet renewed its Lease at 2026-11-21T11:59:00Z, less than 5m0s ago`},
		},
	}
	var table, json bytes.Buffer
	g.Expect(csrcli.Table(&table, r)).To(Succeed())
	g.Expect(table.String()).To(Equal(`CSR csr-7x2kq (bootstrap, host "dpu-1") would not be approved for DPUHCPBridge clusters/dpu1
Approval is stopped: Deleting: the bridge is being deleted
Time alone may change that at 2026-11-21T12:04:00Z

RULE          PASSED  BECAUSE
Signature     yes     it is signed by the key in it
NodeInactive  NO      Node "dpu-1" is not Ready, but its kubelet renewed its Lease at 2026-11-21T11:59:00Z, less than 5m0s ago
`))
	g.Expect(csrcli.JSON(&json, r)).To(Succeed())
	g.Expect(json.String()).To(MatchJSON(`{
		"name": "csr-7x2kq", "bridge": "clusters/dpu1", "kind": "bootstrap", "host": "dpu-1", "approve": false, "stopped": "Deleting: the bridge is being deleted", "again": "2026-11-21T12:04:00Z",
		"rules": [
			{"name": "Signature", "passed": true, "because": "it is signed by the key in it"},
			{"name": "NodeInactive", "passed": false, "because": "Node \"dpu-1\" is not Ready, but its kubelet renewed its Lease at 2026-11-21T11:59:00Z, less than 5m0s ago"}
		]
	}`))
}
