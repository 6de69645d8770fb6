package diffcli

// bridge writes what becomes of a DPUHCPBridge.
func (t *table) bridge(b Bridge) {
	t.subject("DPUHCPBridge", b.Namespace, b.Name, b.Other)
	if b.Stopped != "" {
		t.line(1, "Nothing of the hosted cluster is written: %s", b.Stopped)
	}
	t.written(b.Objects)
	t.list(1, "Control plane", b.ControlPlane)
	if len(b.Templates) > 0 {
		t.line(1, "Templates")
	}
	for _, of := range b.Templates {
		t.line(2, "%s ConfigMap %s/%s (BFB %s, DPUFlavor %s): %s", of.Verb, of.Namespace, of.Name, of.BFB, of.Flavor, of.Says)
	}
	if b.DPUs != "" {
		t.line(1, "DPUs")
		t.line(2, "%s", b.DPUs)
	}
	t.findings(b.Findings)
}
