# Everything that a person or CI calls. `make help` lists it.
SHELL := /bin/bash -euo pipefail
# default_image of a variable in the operator's deployment, where both are pinned.
default_image = $(shell sed -n '/name: $(1)$$/{n;s/.*value: //p}' config/manager/manager.yaml)
IMG ?= $(call default_image,RELATED_IMAGE_OOOI)
ENVOY_IMG ?= $(call default_image,RELATED_IMAGE_ENVOY)
KUBECTL ?= kubectl
# Helm writes under this name: a release that takes over, and its upgrades, meet no conflict.
APPLY = $(KUBECTL) apply --server-side --field-manager=helm
LAB := test/lab/lab
# All is compiled in one way, so that a cold cache sees each package once: tests as binaries, and the lab's tools as both.
export CGO_ENABLED := 0
export GOFLAGS := $(GOFLAGS) -trimpath
# What `oooi --version` says beside the release, so that `oooi check` tells two builds of one release apart. Without git: nothing.
COMMIT ?= $(shell git describe --always --abbrev=12 --exclude '*' --dirty=.dirty 2>/dev/null)
GO_BUILD = go build -buildvcs=false -ldflags "-s -w -X github.com/cldmnky/oooi/cmd.commit=$(COMMIT)"
BINARY ?= bin/oooi
GEN := go tool controller-gen
TOOL := go tool -modfile=hack/tools/go.mod
# The release that the manifests name.
RELEASE = $(patsubst oooi:%,%,$(call default_image,RELATED_IMAGE_OOOI))
# What tests of the daemons and controllers run against: a real kube-apiserver, etcd and Envoy, built or fetched by the lab.
TESTENV = eval "$$($(LAB) env)"; export OOOI_ENVOY=$$(command -v envoy)
# Where each test's result and time are written.
TIMES ?= dist/times

.PHONY: help
help: ## List the targets.
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/oooi.
	$(GO_BUILD) -o $(BINARY) .

##@ Tests
.PHONY: test
test: ## Everything that is not the lab: units, real kube-apiserver, real Envoy, real DHCP and DNS clients. Needs root.
	$(LAB) deps
	$(LAB) build assets envoy
	mkdir -p $(TIMES)
	$(TESTENV); trap 'hack/slowest $(TIMES)/*.json; hack/failed $(TIMES)/*.json' EXIT; rm -f $(TIMES)/*.json; \
	$(TOOL) gotestsum --format pkgname --jsonfile $(TIMES)/tests.json -- -timeout 20m -tags netns -ldflags "-s -w" ./internal/controller ./...; \
	( cd test/lab; go tool -modfile=../../hack/tools/go.mod gotestsum --format pkgname --jsonfile $(abspath $(TIMES))/lab.json -- ./... ); \
	( cd hack/release; go tool -modfile=../tools/go.mod gotestsum --format pkgname --jsonfile $(abspath $(TIMES))/release.json -- -count=1 ./... ) # go test's cache does not see other modules' files

.PHONY: test-fast
test-fast: ## Only what needs neither root nor the lab's binaries.
	go test $$(go list ./internal/... ./cmd/... | grep -vE '/(apitest|apply|bridgecli|controller|observe|rbac|webhook)$$')

.PHONY: lab
lab: ## Bring the lab up: a real Kubernetes node, a VLAN, a stand-in for HyperShift.
	$(LAB) deps
	$(LAB) build
	$(LAB) up

.PHONY: demo
demo: ## The main job, shown: a virtual machine on an isolated VLAN joins its hosted control plane.
	test/lab/demo/run

.PHONY: e2e
e2e: ## The lab's scenarios, with assertions. Needs root.
	test/lab/e2e/run

.PHONY: e2e-cut-off
e2e-cut-off: ## The applications' scenario with the hosted API cut off for 5 minutes; `make e2e` does it for 75 seconds.
	OOOI_CUT_OFF=5m test/lab/e2e/run -run TestApplicationsAreReachedFromBothSides

.PHONY: e2e-metallb
e2e-metallb: ## Applications through the real MetalLB and through node ports, on virtual machines. Needs two idle cores.
	test/lab/e2e/run -tags e2e,metallb -run 'ThroughMetalLB|ThroughNodePorts'

.PHONY: e2e-many
e2e-many: ## The allow-list's line with twenty Infras, eighty pods on one node (4 minutes); `make test` does it without pods.
	test/lab/e2e/run -tags e2e,many -run OfTwentyInfras

.PHONY: e2e-outages
e2e-outages: ## What clients meet when nodes die (DEATHS times, 1), are cut off, and pods are replaced. Needs two idle cores.
	OOOI_DEATHS=$(or $(DEATHS),1) test/lab/e2e/run -tags e2e,outages -timeout 0 -run 'AgainAndAgain|CutOffNodeKeeps|JoinsWhileANodeDies|RolloutsAreNot'

.PHONY: e2e-faults
e2e-faults: ## Break each thing of test/lab/faults in turn: `oooi diagnose` names each, and finds nothing in ten healthy boots (an hour: silence has to last).
	test/lab/e2e/run -tags e2e,faults -timeout 3h -run 'EachFaultIsNamed|TenHealthyBoots'

.PHONY: e2e-changes
e2e-changes: ## Foretell 26 more changes of a running Infra, make them, count pods and streams, and ask each service meanwhile (6 minutes); `make e2e` does eight.
	test/lab/e2e/run -tags e2e,changes -run TwentySixChanges

.PHONY: e2e-upgrade
e2e-upgrade: ## Containers of the last operator's pods restart beside this one. Needs the repository's history.
	test/lab/e2e/run -tags e2e,upgrade -run OfTheLastManager

.PHONY: browser
browser: ## The pages of `oooi ui` under headless Chromium, with axe-core; UPDATE=1 makes the screenshots of docs/images anew. Needs an idle core.
	$(LAB) deps chromium
	$(LAB) build kube axe
	$(GO_BUILD) -o bin/oooi .
	$(TESTENV); cd test/lab; go test -tags browser -count=1 -v ./browser $(if $(UPDATE),-update)

.PHONY: soak
soak: ## Rehearse what goes wrong, by chance, for as long as FOR says (1h); `make e2e` does it for five minutes.
	OOOI_SOAK=$(or $(FOR),1h) test/lab/e2e/run -timeout 0 -run InARehearsal

.PHONY: bench
bench: ## Benchmarks as a table.
	test/bench/run

.PHONY: late
late: ## The controllers' tests while each watch lags by 0.3 s, as on a busy API server (10 minutes).
	$(LAB) build assets
	$(TESTENV); go test -timeout 30m ./internal/controller -late /

.PHONY: mutants
mutants: ## Take out one safeguard at a time; list the test that kills each. SHARD=3/8: an eighth; UNTRIED=1: the rest.
	$(LAB) build assets envoy
	mkdir -p dist
	$(TESTENV); hack/mutants --report dist/mutants.tsv $(if $(SHARD),--shard $(SHARD)) $(if $(UNTRIED),--untried)

.PHONY: golden
golden: ## Rewrite the golden files; read the diff.
	$(TESTENV); go test $$(grep -rl testkit/golden --include='*_test.go' internal | xargs dirname | sort -u | sed 's,^,./,') -update

##@ Generated files and checks
.PHONY: generate
generate: ## Generate deep copies, apply configurations, CRDs, RBAC and the field reference.
	$(GEN) object paths=./api/...
	$(GEN) applyconfiguration paths=./api/...
	$(GEN) crd:maxDescLen=2000 paths=./api/... output:crd:dir=config/crd/bases
	cd config/crd; { echo resources:; ls bases/*.yaml | sed 's,^,- ,'; } > kustomization.yaml
	$(GEN) rbac:roleName=oooi-manager-role paths=./internal/rbac/manager output:rbac:dir=config/rbac
	$(GEN) rbac:roleName=oooi-vlan-services,fileName=vlan_role.yaml paths=./internal/rbac/vlan output:rbac:dir=config/rbac
	$(GEN) rbac:roleName=oooi-dpu-bridge,fileName=bridge_role.yaml paths=./internal/rbac/bridge output:rbac:dir=config/rbac
	$(TOOL) crd-ref-docs --source-path=api --config=hack/reference.yaml --renderer=markdown --output-path=docs/reference/api.md

.PHONY: docs
docs: ## Make the site of README and docs in dist/site; a link to what is not there, or a page on no path, is an error.
	$(LAB) build sphinx
	rm -rf dist/site
	$(TESTENV); sphinx-build -q -W --keep-going -b html -c hack/site . dist/site

.PHONY: lint
lint: ## golangci-lint, from its own module, of all modules with code of ours.
	status=0; for module in . test/lab hack/release; do \
	  ( cd $$module; go tool -modfile=$(abspath hack/lint/go.mod) golangci-lint run ./... ) || status=1; \
	done; exit $$status

.PHONY: verify
verify: ## Fail when generated files are stale, go.mod is untidy, or two clean builds differ.
	hack/verify

.PHONY: chart
chart: ## Pack the Helm chart as dist/oooi-VERSION.tgz.
	$(LAB) build helm
	$(TESTENV); helm package charts/oooi --destination dist

.PHONY: bundle
bundle: ## Make an OLM bundle of config/ in dist/bundle, with IMG and ENVOY_IMG, each HOST/NAME@sha256:DIGEST.
	manifests=$$(hack/manifests $(IMG) $(ENVOY_IMG)); cd hack/release; \
	go run . bundle $(RELEASE) $(abspath dist/bundle) ../../config/samples/{infra,dpuhcpbridge}.yaml <<< "$$manifests"

##@ Cluster
.PHONY: install
install: ## Install the CRDs into the current cluster.
	$(APPLY) -f config/crd/bases

.PHONY: uninstall
uninstall: ## Remove the CRDs, and with them every object of them.
	$(KUBECTL) delete --ignore-not-found -f config/crd/bases

.PHONY: deploy
deploy: ## Deploy the operator with image IMG and Envoy's ENVOY_IMG.
	hack/manifests $(IMG) $(ENVOY_IMG) | $(APPLY) --force-conflicts -f -
	$(KUBECTL) -n oooi-system rollout status deployment/oooi-controller-manager --timeout=120s

.PHONY: undeploy
OWN = infras.hostedcluster.densityops.com,dpuhcpbridges.provisioning.dpu.hcp.io
undeploy: ## Remove every Infra and DPUHCPBridge while the operator can still clean up after them, then the operator and the CRDs.
	$(KUBECTL) delete $(OWN) --all --all-namespaces --ignore-not-found --timeout=180s || \
	  { $(KUBECTL) describe $(OWN) --all-namespaces; echo "undeploy: the conditions above say what these wait for; nothing else was removed" >&2; exit 1; }
	hack/manifests $(IMG) $(ENVOY_IMG) | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: run
run: ## Run the manager from here against the current cluster.
	go run . manager --image=$(IMG) --envoy-image=$(ENVOY_IMG)

.PHONY: release
release: ## Make dist/release of the commit: image and archives for amd64 and arm64, chart, SBOMs, provenance, checksums.
	$(LAB) build helm
	$(TESTENV); hack/release/run $(RELEASE) $(abspath dist/release)

.PHONY: release-twice
release-twice: release ## Make the release again, in a clone, and compare the bytes.
	clone=$$(mktemp -d); trap 'rm -rf $$clone' EXIT; git clone -q . $$clone; $(MAKE) -s -C $$clone release; \
	diff dist/release/SHA256SUMS $$clone/dist/release/SHA256SUMS; echo "the same bytes twice"

##@ Names that the seed promised
.PHONY: manifests fmt vet test-e2e setup-test-e2e cleanup-test-e2e container-build container-push
manifests: generate
fmt:
	$(TOOL) gofumpt -w $$(git ls-files '*.go' | grep -vE 'zz_generated|applyconfiguration')
vet:
	go vet ./...
test-e2e: e2e
setup-test-e2e: lab
cleanup-test-e2e:
	$(LAB) down
container-build: ## Build IMG with podman or docker from the Containerfile.
	$$(command -v podman || command -v docker) build -f Containerfile --build-arg COMMIT=$(COMMIT) -t $(IMG) .
container-push: ## Push IMG with podman or docker.
	$$(command -v podman || command -v docker) push $(IMG)
