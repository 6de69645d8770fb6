package nad

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestAVLANUnderAnotherPluginsKeyIsToldAndWrittenUnderItsOwn(t *testing.T) {
	const localnet = `"type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"a/b"`
	for config, want := range map[string]string{
		`{"name":"p",` + localnet + `,"vlan":66}`:                      `{"name":"p","netAttachDefName":"a/b","topology":"localnet","type":"ovn-k8s-cni-overlay","vlanID":66}`,
		`{"name":"p",` + localnet + `,"vlanID":66}`:                    "",
		`{"name":"p",` + localnet + `,"vlanID":66,"vlan":67}`:          "",
		`{"name":"p",` + localnet + `}`:                                "",
		`{"type":"bridge","bridge":"br1","vlanID":66}`:                 `{"plugins":[{"bridge":"br1","type":"bridge","vlan":66}]}`,
		`{"type":"cnv-bridge","bridge":"br1","VLANid":66}`:             `{"plugins":[{"bridge":"br1","type":"cnv-bridge","vlan":66}]}`,
		`{"plugins":[{"type":"bridge","vlanID":66},{"type":"other"}]}`: `{"plugins":[{"type":"bridge","vlan":66},{"type":"other"}]}`,
		`{"type":"bridge","bridge":"br1","vlan":66,"vlanID":67}`:       "",
		`{"type":"bridge","bridge":"br1","vlanID":0}`:                  "",
		`{"type":"macvlan","master":"eth1","vlan":66}`:                 "",
	} {
		t.Run(config, func(t *testing.T) {
			g := NewWithT(t)
			c, err := Parse(config)
			g.Expect(err).NotTo(HaveOccurred())
			before := c.String()
			_, write, tagged, ok := c.MisnamedVLAN()
			g.Expect(ok).To(Equal(want != ""))
			g.Expect(c.String()).To(Equal(before), "what was read is as it was")
			if ok {
				g.Expect(write).To(HaveSuffix(": 66"))
				g.Expect(tagged.String()).To(Equal(want))
			}
		})
	}
}

// libcni accepts a list without cniVersion, but not one with null (libcni/conf.go, ConfListFromBytes).
func TestWhatWasNotWrittenIsNotPrintedAsNull(t *testing.T) {
	for _, config := range []string{
		`{"type":"bridge","vlan":66,"ipam":{"type":"host-local"}}`,
		`{"type":"bridge","vlan":66,"cniVersion":null,"name":null}`,
		`{"plugins":[{"type":"bridge"}],"cniVersion":null}`,
	} {
		c, err := Parse(config)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(c.WithoutAddresses().String()).NotTo(ContainSubstring("null"))
	}
}
