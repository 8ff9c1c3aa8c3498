# Everyday commands of this repository. `make` alone lists them.
#
# Tools are pinned in tools/go.mod, a module of its own so that the product's
# go.mod does not carry them. They are built into .cache/bin on first use, and
# again when tools/go.mod changes.

SHELL  := bash
.SHELLFLAGS := -euo pipefail -c
MODULE := github.com/grapnelhq/grapnel
BIN    := $(CURDIR)/.cache/bin

# The modules below this one: what costs a dependency that not every host should pay.
NESTED := $(filter-out tools,$(patsubst %/go.mod,%,$(shell git ls-files '*/go.mod')))

# Where generated code goes: the work tree, or a folder to compare with.
OUT      ?= $(CURDIR)
# The packages that `race`, `bench` and `fuzz` look at.
PKGS     ?= ./...
BENCH    ?= .
COUNT    ?= 1
FUZZTIME ?= 60s
# What `fuzz` runs unless PKGS says otherwise: what reads the input of plugins,
# operators and clients.
FUZZ := ./internal/proc:FuzzHandshakeLine ./internal/wire:FuzzLane ./internal/wire:FuzzLine ./config:FuzzParse ./internal/cond:FuzzCondition \
        ./internal/engine/merge:FuzzMerge ./internal/rpc:FuzzBatch \
        ./internal/text:FuzzEscape ./internal/text:FuzzShown ./sdk:FuzzEscape
# How long `soak` runs: a time (30m) or a number of dispatches.
SOAK ?= 1000000
# How many calls `agents-soak` sends.
SOAK_CALLS ?= 200

# Where the public data of `eval` is, and where it comes from.
EVAL_DATA ?= $(CURDIR)/.cache/eval
EVAL_FROM ?= https://github.com
DIALOGUES := snap-research/locomo@e76cdff4a04fce19090596d49862fe87a5c15aaa \
             liuzeming01/XDailyDialog@6e7ecf54c9f169215b4b8c18995c7aac74117127 \
             HLTCHKUST/Xpersona@1da049a1bbf3b01548f98cc23ba75ef871416e50

# Systems that Grapnel is built for besides the one at hand.
CROSS := darwin/arm64 windows/amd64
# What `release` builds for, and the version that the programs print.
RELEASES ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
VERSION  ?= $(patsubst v%,%,$(shell git describe --tags --always --dirty))
PROTOS := $(wildcard proto/grapnel/plugin/v1/*.proto)

.DEFAULT_GOAL := help
.PHONY: help build test long stress count nested page kit-ts kit-python race lint fmt fmt-check generate bench fuzz soak verify cross release tools eval-data eval agents agents-soak contracts hosts mcp-conformance

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

build: ## compile all packages
	go build ./...

test: ## run all tests of the main module
	go test ./...

# One package at a time: each has processes and databases of its own to keep two cores at work.
long: ## run them with all rows, floods, kills and power cuts, then all under the race detector (about an hour on two idle cores)
	GRAPNEL_LONG=1 go test -p 1 -timeout 30m ./...
	.ci/race all

stress: ## run the tests beside four busy loops and a writer that syncs (PKGS=./store): none may depend on time
	@out=$$(mktemp -d); trap 'kill $$(jobs -p); rm -rf "$$out"' EXIT; \
	for _ in 1 2 3 4; do (while :; do :; done) & done; \
	(while dd if=/dev/zero of="$$out/file" bs=1M count=64 conv=fsync status=none; do :; done) & \
	go test -count 1 -timeout 60m $(PKGS)

count: ## measure the repository: lines, names, packages, documents, programs (COLD=1: also a build and the tests from nothing)
	@go -C tools run ./count $(if $(COLD),-cold)

nested: ## build and test the nested modules
	@for module in $(NESTED); do \
		echo "== $$module"; \
		(cd "$$module" && go build -o /dev/null ./... && go test -timeout 20m ./...) || exit 1; \
	done

page: ## check the gateway's page and that its bundles are fresh (needs Node.js 20 and the npm registry)
	cd gateway/internal/web && npm ci && npm run check && go -C build run . -check

kit-ts: ## build and test the TypeScript kit and its example (needs Node.js 20 and the npm registry)
	cd sdks/typescript && npm ci --no-fund && npm test
	cd examples/plugin-ts && npm ci --no-fund && npm test

kit-python: ## test the Python kit and its examples
	cd sdks/python && PYTHONPATH=src python3 -m unittest discover -s tests -t .
	cd examples/plugin-python && PYTHONPATH=../../sdks/python/src python3 -m unittest

mcp-conformance: ## run the official conformance suite of MCP against the gateway (needs Node.js 22 and the npm registry)
	GRAPNEL_MCP_CONFORMANCE='npx --yes @modelcontextprotocol/conformance@0.1.16' go test ./gateway -run '^TestMCPConformance$$' -v -count 1

race: ## run tests under the race detector (PKGS=./runtime/...)
	go test -race $(PKGS)

lint: $(BIN)/golangci-lint ## check formatting, vet and all linters of .golangci.yaml
	$(BIN)/golangci-lint fmt --diff
	@for module in . $(NESTED); do \
		echo "== $$module"; \
		(cd "$$module" && go vet ./... && $(BIN)/golangci-lint run) || exit 1; \
	done

fmt: $(BIN)/golangci-lint ## format all Go files in place
	$(BIN)/golangci-lint fmt

fmt-check: $(BIN)/golangci-lint ## fail with a diff when a file is not formatted
	$(BIN)/golangci-lint fmt --diff

generate: $(BIN)/protoc-gen-go $(BIN)/protoc-gen-go-grpc ## generate Go code from the wire contract (needs protoc), tables of documents, and types of the kits
ifneq ($(PROTOS),)
	@command -v protoc >/dev/null || { echo 'protoc is missing: install the package protobuf-compiler' >&2; exit 1; }
	@mkdir -p '$(OUT)'
	PATH="$(BIN):$$PATH" protoc --proto_path=proto \
		--go_out='$(OUT)' --go_opt=module=$(MODULE) \
		--go-grpc_out='$(OUT)' --go-grpc_opt=module=$(MODULE) $(PROTOS)
endif
	@if [ '$(OUT)' = '$(CURDIR)' ]; then go generate ./internal/docs/docgen ./internal/docs/kitgen; fi

# The header of a generated file names the protoc that made it. Another protoc
# is no difference as long as the code is the same.
verify: ## check that generated code and documents are fresh and go.mod tidy
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	$(MAKE) --no-print-directory generate OUT="$$tmp/new"; \
	flat() { mkdir -p "$$2"; find "$$1/internal/wire" -name '*.pb.go' 2>/dev/null | while read -r file; do \
		grep -vE '^// (	|- )protoc +v' "$$file" >"$$2/$$(basename "$$file")"; done; }; \
	flat . "$$tmp/have"; flat "$$tmp/new" "$$tmp/want"; \
	diff -ru "$$tmp/have" "$$tmp/want" || { echo 'generated code is stale: run make generate' >&2; exit 1; }
	@go test ./internal/docs/docgen ./internal/docs/kitgen
	@for module in . $(NESTED); do (cd "$$module" && go mod tidy -diff) || { echo "go.mod of $$module is not tidy" >&2; exit 1; }; done

bench: ## run benchmarks (BENCH=Dispatch COUNT=10 PKGS=./runtime)
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKGS)

eval-data: ## clone the public data of eval into EVAL_DATA (.cache/eval)
	@for source in $(DIALOGUES); do \
		repo="$${source%@*}" dir='$(EVAL_DATA)'/"$$(basename "$${source%@*}")"; \
		[ -d "$$dir" ] || git clone --quiet '$(EVAL_FROM)'/"$$repo" "$$dir"; \
		git -C "$$dir" checkout --quiet "$${source#*@}"; \
	done

eval: eval-data ## measure the memory on public data: facts, wishes, secrets, retrieval
	GRAPNEL_EVAL_DATA='$(EVAL_DATA)' go test ./internal/memory/publictest -v -count 1 -timeout 30m

# Minimizing what is merely new is bounded: by default it takes a minute each, in
# which nothing else is tried.
fuzz: ## fuzz decoder, configuration, conditions, merging, batches for FUZZTIME (60s) each; others: PKGS=./manifest
	@out=$$(mktemp -d); trap 'rm -rf "$$out"' EXIT; failed=0; \
	tests() { go list $(PKGS) | while read -r pkg; do \
		go test -list '^Fuzz' "$$pkg" | { grep '^Fuzz' || true; } | sed "s|^|$$pkg:|"; \
	done; }; \
	for test in $(if $(filter file,$(origin PKGS)),$(FUZZ),$$(tests)); do \
		pkg=$${test%:*} name=$${test##*:}; echo "== $$pkg $$name"; \
		if go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 50x "$$pkg" 2>&1 | tee "$$out/log"; \
		then word=ok; else word=FAILED failed=1; fi; \
		awk -v word="$$word" -v name="$$name" -v pkg="$$pkg" '/execs:/ { execs = $$5 } \
			END { printf "%-8s%12s  %s %s\n", word, execs + 0, pkg, name }' "$$out/log" >>"$$out/summary"; \
	done; \
	echo "== result, inputs tried"; cat "$$out/summary"; exit $$failed

soak: ## run a million dispatches over 20 plugins, a third of them bad (SOAK=100000 or SOAK=30m)
	GRAPNEL_SOAK=$(SOAK) go test ./runtime -run '^TestSoak$$' -v -count 1 -timeout 0

agents: ## check the real Claude Code and Codex behind Grapnel, against a fake model (needs npm, and 350 MB once; AGENTS='-run cold -count 12 codex')
	cd tools/hosts && go run . -check -parallel 2 $(AGENTS)

agents-soak: ## send 200 calls to gateways that start, are killed, restarted and reloaded (SOAK_CALLS=1000)
	cd tools/hosts && go run . -soak $(SOAK_CALLS) -parallel 2

contracts: ## compare the events of the newest agents with those that are mapped or left out (needs the npm registry and 600 MB)
	cd tools/hosts && go run . -contracts

hosts: contracts ## show what the newest agents of vendors do with hooks, and run the checks (needs npm, Node.js 20 and minutes; HOSTS='-run deny codex')
	cd tools/hosts && go run . -newest $(HOSTS)

# Without optimizations: it is only to compile.
cross: ## compile for the other supported systems
	@for target in $(CROSS); do \
		echo "== $$target"; \
		CGO_ENABLED=0 GOOS="$${target%/*}" GOARCH="$${target#*/}" go build -gcflags='all=-N -l' ./...; \
	done

release: ## build static programs without debug data into dist (VERSION=1.0.0 RELEASES=linux/amd64)
	@for target in $(RELEASES); do \
		os="$${target%/*}" arch="$${target#*/}"; \
		for program in grapnel grapnel-hook; do \
			out="dist/$$program-$(VERSION)-$$os-$$arch$$([ "$$os" != windows ] || echo .exe)"; \
			echo "== $$out"; \
			CGO_ENABLED=0 GOOS="$$os" GOARCH="$$arch" \
				go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o "$$out" "./cmd/$$program"; \
		done; \
	done

tools: $(addprefix $(BIN)/,golangci-lint gofumpt protoc-gen-go protoc-gen-go-grpc benchstat) ## build all pinned tools into .cache/bin

# One rule builds any tool: go names a binary after the last element of its path.
$(BIN)/golangci-lint: TOOL = github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(BIN)/gofumpt: TOOL = mvdan.cc/gofumpt
$(BIN)/protoc-gen-go: TOOL = google.golang.org/protobuf/cmd/protoc-gen-go
$(BIN)/protoc-gen-go-grpc: TOOL = google.golang.org/grpc/cmd/protoc-gen-go-grpc
$(BIN)/benchstat: TOOL = golang.org/x/perf/cmd/benchstat
$(BIN)/%: tools/go.mod tools/go.sum
	@mkdir -p $(BIN)
	go -C tools build -o $@ $(TOOL)
	@touch $@
