// Package config has the manifests that this binary's version is installed with.
package config

import "embed"

// Files are the CRDs, the operator's Roles and its webhook, by their paths here.
//
//go:embed crd/bases/*.yaml rbac/*role.yaml rbac/leader_election.yaml webhook/keys.yaml webhook/validating.yaml
var Files embed.FS
