// Package bfcfg makes the text from which DPF installs DPUs: BF_CFG_TEMPLATE. It is the ignition of a live system, in which DPF fills in
// what is the DPU's own, and which has the ignition of the operating system that it installs, the target, as a file.
//
// What DPUs get is in content, file by file, under the path that it has on the DPU; table.go says who gets it. The facts, e.g. which units
// and paths DPF and the BlueField layer of RHCOS expect, are those of rh-ecosystem-edge/dpf-hcp-provisioner-operator 31ded85b.
package bfcfg

import (
	"fmt"

	"github.com/cldmnky/oooi/internal/dpf"
)

// configMapLimit leaves 8 KiB of the 1 MiB that a ConfigMap may have to its metadata.
const configMapLimit = 1<<20 - 8<<10

// Template is the text of BF_CFG_TEMPLATE; the same Source gives the same bytes. The error is a *Problem if it can be mended by a user.
func Template(from Source) ([]byte, error) {
	hypershift, err := from.hypershift()
	if err != nil {
		return nil, err
	}
	passwd := hypershift.Passwd
	target, err := from.target(hypershift)
	if err != nil {
		return nil, err
	}
	text, err := from.live(target, passwd)
	if err != nil {
		return nil, err
	}
	bf, err := rendered(text)
	if err != nil {
		return nil, err
	}
	if err := from.fits(len(text), len(bf)); err != nil {
		return nil, err
	}
	return text, nil
}

// fits judges the sizes of the template and of what DPF makes of it.
func (s Source) fits(template, bf int) error {
	const field = "DPUFlavor spec.configFiles"
	if template > configMapLimit {
		return &Problem{TemplateTooLarge, field, fmt.Sprintf("the template has %d bytes, and a ConfigMap may have %d: move large files from the flavor into an image", template, configMapLimit)}
	}
	if _, skip := s.Flavor.Annotations[dpf.AnnotationSkipSizeCheck]; !skip && bf > dpf.MaxBFSize {
		return &Problem{TemplateTooLarge, "DPUFlavor metadata.annotations", fmt.Sprintf("the template has up to %d bytes, and DPF installs %d: annotate the flavor with %s=\"\"", bf, dpf.MaxBFSize, dpf.AnnotationSkipSizeCheck)}
	}
	return nil
}
