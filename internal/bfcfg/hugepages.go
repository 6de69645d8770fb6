package bfcfg

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_4/types"
	"k8s.io/apimachinery/pkg/api/resource"
)

// forOVS is what Open vSwitch takes, in octets, where a flavor does not say: 250 pages of 2 MiB, as the public operator has it
// (dpf-hcp-provisioner-operator, ovs-hugepages.go).
const forOVS = 500 << 20

const hugepagesOf = "hugepages-" // begins the name of such a resource, before the size of a page

// hold finds out which hugepages a pod has to hold for Open vSwitch, and the image of that pod. The kubelet itself reserves none
// (kubernetes#140544). The public operator has a DaemonSet in the hosted cluster, with an image from the release's payload, and one amount for
// all; ours is a static pod, so that no pod is before it, no registry is asked, and each flavor has its own.
func (s *Source) hold(config types.Config) error {
	pages, said, err := s.reserved()
	if err != nil {
		return err
	}
	if !said {
		pages = s.ofKernel()
	}
	if len(pages) == 0 {
		return nil
	}
	s.pause = pauseImage(config)
	switch {
	case s.pause != "":
		s.hugepages = strings.Join(pages, ", ")
	case said:
		return &Problem{PauseImageNotFound, "HyperShift's ignition, " + crioConf, "no pause_image is there, which the pod that holds hugepages for Open vSwitch needs: take hugepages out of the flavor's systemReservedResources"}
	}
	return nil
}

// reserved are the hugepages that the flavor takes from DPF's services, as resources of a pod, and whether it says anything of hugepages.
func (s *Source) reserved() (pages []string, said bool, err error) {
	all := s.Flavor.Spec.SystemReservedResources
	for _, name := range slices.Sorted(maps.Keys(all)) {
		size, of := strings.CutPrefix(name, hugepagesOf)
		if !of {
			continue
		}
		page, err := resource.ParseQuantity(size)
		amount := all[name]
		if err != nil || page.Sign() <= 0 || amount.Value()%page.Value() != 0 {
			return nil, true, &Problem{FlavorInvalid, "DPUFlavor spec.systemReservedResources", fmt.Sprintf("%s: %s is no number of whole pages: correct it", name, amount.String())}
		}
		if said = true; amount.Sign() > 0 {
			pages = append(pages, name+": "+amount.String())
		}
	}
	return pages, said, nil
}

// ofKernel is what Open vSwitch takes of the first pages, reserved by the kernel's command line, that are enough for it.
func (s *Source) ofKernel() []string {
	size := int64(2 << 20) // of an arm64 kernel with pages of 4 KiB
	for parameter := range strings.FieldsSeq(strings.Join(s.Flavor.Spec.Grub.KernelParameters, " ")) {
		switch name, value, _ := strings.Cut(parameter, "="); name {
		case "default_hugepagesz", "hugepagesz":
			size = octets(value)
		case "hugepages":
			count, err := strconv.ParseInt(value, 10, 32)
			if err != nil || size <= 0 {
				continue
			}
			if needed := (forOVS + size - 1) / size; count >= needed {
				return []string{hugepagesOf + binary(size) + ": " + binary(needed*size)}
			}
		}
	}
	return nil
}

func binary(octets int64) string { return resource.NewQuantity(octets, resource.BinarySI).String() }

// octets reads a size as the kernel does (lib/cmdline.c, memparse); 0 if it is none.
func octets(size string) int64 {
	digits := strings.TrimRight(size, "kKmMgGbB")
	n, err := strconv.ParseInt(digits, 10, 21)
	if err != nil {
		return 0
	}
	unit, _, _ := strings.Cut(strings.ToUpper(size[len(digits):]), "B")
	return n << map[string]int{"K": 10, "M": 20, "G": 30}[unit]
}

const crioConf = "/etc/crio/crio.conf"

var pauseSetting = regexp.MustCompile(`(?m)^\s*pause_image\s*=\s*"([^"\s\\]+)"`)

// pauseImage is the image that CRI-O has for each pod; of several files the last one counts (crio.conf.d(5)).
func pauseImage(config types.Config) (image string) {
	files := slices.SortedFunc(slices.Values(config.Storage.Files), func(a, b types.File) int { return cmp.Compare(a.Path, b.Path) })
	for _, f := range files {
		if f.Path != crioConf && !strings.HasPrefix(f.Path, crioConf+".d/") {
			continue
		}
		text, err := unpacked(f.Contents)
		if err != nil {
			continue // the DPU's CRI-O does not get it, either
		}
		for _, found := range pauseSetting.FindAllSubmatch(text, -1) {
			image = string(found[1])
		}
	}
	return image
}
