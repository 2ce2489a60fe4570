# Building and running need Go, make, bash and git; the tests also PostgreSQL and
# Node, for the parts that are about them (CONTRIBUTING.md).
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
# The version is stamped below. Go's own stamp fails a build in a checkout that
# belongs to another user, as CI's often does.
export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)

# Absolute, because tests run in the folder of their package. Given to single
# commands and not exported: scripts/temporal.sh must see the user's own value.
WITH_TEMPORAL := INTERLOCK_TEMPORAL_CLI="$(CURDIR)/bin/temporal"
# Tools have a module of their own, so that they are no dependency of a user.
TOOL := go tool -modfile=tools/go.mod

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z\/-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## Build bin/interlock
	@mkdir -p bin
	go build -ldflags "-X main.version=$(VERSION)" -o bin/interlock ./cmd/interlock

.PHONY: run
run: build bin/temporal ## Build all, start a local Temporal and run the demo
	$(WITH_TEMPORAL) bin/interlock demo

.PHONY: page
page: build bin/temporal ## The same, and you decide the gate, on a page in your browser
	$(WITH_TEMPORAL) bin/interlock demo --page

.PHONY: dev
dev: build bin/temporal ## Start a local Temporal with its UI and a worker, on fixed ports
	$(WITH_TEMPORAL) bin/interlock dev

.PHONY: test
test: bin/temporal ## Run every test, those against a local Temporal included
	$(WITH_TEMPORAL) go test -timeout 20m ./...
	$(WITH_TEMPORAL) go -C examples/orders test ./... # a module of its own, as a user has

.PHONY: check
check: ## Check form, static analysis, import rule, modules and recorded histories
	@unformatted=$$(gofmt -l $$(find . -name node_modules -prune -o -name "*.go" -print)); if [[ -n $$unformatted ]]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go mod tidy -diff
	go -C tools mod tidy -diff
	go -C examples/orders mod tidy -diff
	go vet ./...
	go -C examples/orders vet ./...
	$(TOOL) staticcheck ./...
	$(TOOL) workflowcheck -config workflowcheck.yaml ./agent/... ./workflows/...
	go test .
	go test -timeout 10m ./replaytests/...

# REASON says why clients must be broken, where they must.
.PHONY: openapi
openapi: ## Write api/openapi.json from the routes, and the Go client; refuses what breaks clients
	go run ./api/openapi

# FUZZTIME is of each decoder; two run at a time.
.PHONY: fuzz
fuzz: ## Look for what the decoders do not survive; FUZZTIME=1h for long
	@scripts/fuzz.sh $(or $(FUZZTIME),60s)

.PHONY: bench
bench: bin/temporal ## Measure what a turn costs; one JSON object on stdout
	@$(WITH_TEMPORAL) go run ./bench

# FAULTS, SEED and STORE (sqlite, postgres or both) may be given.
.PHONY: chaos
chaos: bin/temporal ## Kill workers, Temporal and databases; FAULTS=200 SEED=… STORE=both
	@mkdir -p bin
	go build -o bin/chaos ./chaos
	$(WITH_TEMPORAL) bin/chaos -faults $(or $(FAULTS),200) -seed $(or $(SEED),0) -store $(or $(STORE),both)

.PHONY: record
record: bin/temporal ## Record missing replay histories; REASON="..." records all anew (before 0.1 only)
	$(WITH_TEMPORAL) go run ./replaytests/record $(if $(REASON),-overwrite "$(REASON)")

# Always asked, because what INTERLOCK_TEMPORAL_CLI names may have changed; it
# costs nothing when a binary is there.
.PHONY: bin/temporal
bin/temporal: ## Provide the temporal CLI (yours, or built once: 10 CPU-minutes)
	@scripts/temporal.sh bin/temporal
