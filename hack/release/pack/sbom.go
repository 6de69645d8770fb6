package pack

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// sbom lists, as SPDX 2.3, the modules that the linker put into a binary, from what Go recorded there.
func (r Release) sbom(arch string) ([]byte, error) {
	info, err := buildinfo.ReadFile(r.binaryPath(arch))
	if err != nil {
		return nil, fmt.Errorf("reading what the binary for %s is made of: %w", arch, err)
	}
	binary, err := r.binary(arch)
	if err != nil {
		return nil, err
	}
	document := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: "oooi-" + r.Version + "-linux-" + arch,
		DocumentNamespace: Home + "/spdx/" + hashed(binary),
		CreationInfo:      &v2_3.CreationInfo{Created: r.When.Format(time.RFC3339), Creators: []common.Creator{{CreatorType: "Tool", Creator: "oooi-release"}}},
	}
	own := pkg(0, info.Main.Path, r.Version)
	own.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: hashed(binary)}}
	own.PackageLicenseConcluded, own.PackageLicenseDeclared = "Apache-2.0", "Apache-2.0"
	document.Packages = []*v2_3.Package{own}
	document.Relationships = []*v2_3.Relationship{relation("DOCUMENT", "DESCRIBES", own.PackageSPDXIdentifier)}
	modules := append([]*debug.Module{{Path: "stdlib", Version: "v" + strings.TrimPrefix(info.GoVersion, "go")}}, info.Deps...)
	for i, m := range modules {
		if m.Replace != nil {
			m = m.Replace
		}
		p := pkg(i+1, m.Path, m.Version)
		document.Packages = append(document.Packages, p)
		document.Relationships = append(document.Relationships, relation(own.PackageSPDXIdentifier, "DEPENDS_ON", p.PackageSPDXIdentifier))
	}
	var text bytes.Buffer
	err = spdxjson.Write(document, &text, spdxjson.Indent("  "))
	return text.Bytes(), err
}

// pkg is a module. Its licence and origin are in its source, which Go does not record.
func pkg(number int, path, version string) *v2_3.Package {
	return &v2_3.Package{
		PackageName: path, PackageVersion: version, PackageSPDXIdentifier: common.ElementID(fmt.Sprintf("Package-%d", number)),
		PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION", PackageLicenseDeclared: "NOASSERTION", PackageCopyrightText: "NOASSERTION",
		PackageExternalReferences: []*v2_3.PackageExternalReference{{Category: "PACKAGE-MANAGER", RefType: "purl", Locator: "pkg:golang/" + path + "@" + version}},
	}
}

func relation(a common.ElementID, kind string, b common.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{RefA: common.MakeDocElementID("", string(a)), RefB: common.MakeDocElementID("", string(b)), Relationship: kind}
}
