package bfcfg

import "testing"

func TestADPUIsInstalledUnderItsName(t *testing.T) {
	dpu := install(t, source(t))
	if got := file(t, dpu.live, "/etc/hostname"); got != dpu1.DPUHostName+"\n" {
		t.Errorf("hostname %q", got)
	}
}
