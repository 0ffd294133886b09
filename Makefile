# Proa. `make` or `make help` says what there is.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PKG ?= ./...
FUZZTIME ?= 5m
postgres := engines/postgres/run.sh
tool := engines/tools/tool.sh
cluster-packages := containerd runc containernetworking-plugins iptables nftables iproute2

.PHONY: help tools build test test-db lint fuzz bench up down status ci clean engines cluster cluster-up cluster-down cluster-status cluster-test cluster-tools node-stop node-start

help: ## Say what each target does
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

tools: ## Build the pinned golangci-lint and govulncheck, once for this machine
	@$(tool) golangci-lint
	@$(tool) govulncheck

build: ## Build every program into bin/
	go build -o bin/ $$(go list ./cmd/... | grep -vE '/(launcher|sftp|ssh)$$')
	CGO_ENABLED=0 go build -o bin/launcher ./cmd/launcher # this and sftp run in containers of apps, on whatever is there
	CGO_ENABLED=0 go build -o bin/proa-sftp ./cmd/sftp
	go build -o bin/proa-ssh ./cmd/ssh # bin/ comes first on the PATH of .run/env, and there are others of these two names

test: ## Run the tests with the race detector on a real PostgreSQL (PKG=./kit/... for some)
	@$(postgres) start test
	PROA_TEST_DATABASE_URL="$$($(postgres) url test)" go test -race $(PKG)

test-db: ## Start the tests' PostgreSQL and print the line that lets you run go test by hand
	@$(postgres) start test >&2
	@echo "export PROA_TEST_DATABASE_URL='$$($(postgres) url test)'"

lint: ## Check format, vet, lint and known vulnerabilities
	go vet ./...
	@lint=$$($(tool) golangci-lint); echo golangci-lint run; "$$lint" run
	@engines/tools/vuln.sh

fuzz: ## Run each fuzz target for FUZZTIME (5m)
	@$(postgres) start test
	@export PROA_TEST_DATABASE_URL="$$($(postgres) url test)"; \
	grep -roH --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's|/[^/]*:func | |' | sort | while read -r dir target; do \
		echo "$$target in $$dir, for $(FUZZTIME)"; \
		go test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) "$$dir" </dev/null; \
	done

bench: ## Measure, each figure beside the bare engine's from the same run
	@$(postgres) start bench
	PROA_BENCH_DATABASE_URL="$$($(postgres) url bench)" go run ./bench

engines: ## Build the engines and the images of apps that this machine has not built yet
	@[ "$$(id -u)" = 0 ] || { echo "Making a root filesystem needs root, and so does the cluster. Run this again as root." >&2; exit 1; }
	@engines/apt.sh $(cluster-packages) debootstrap
	@engines/build.sh >/dev/null
	@go run ./deploy/image build

cluster: # the program behind the targets below
	@go build -buildvcs=false -o bin/cluster ./engines/cluster

cluster-up: cluster ## Bring up a real Kubernetes cluster with registry and gateway (NODES=2 for two nodes; needs root)
	@bin/cluster up $(NODES)

cluster-down: cluster ## Take the cluster down; only the registry's content stays
	@bin/cluster down

cluster-status: cluster ## Say what runs of the cluster
	@bin/cluster status

cluster-test: NODES = 2
cluster-test: cluster-tools cluster-up ## Try the cluster: services, names, policies, routes, restarts, staging and running apps
	@. "$${PROA_RUN:-.run}/cluster.env"; PROA_TEST_CLUSTER=1 go test -count=1 -timeout 20m -v ./engines/smoke

cluster-tools:
	@command -v javac >/dev/null || engines/apt.sh openjdk-17-jdk-headless

node-stop: cluster ## Turn a node off, as a power cut would (NODE=2)
	@bin/cluster node stop $(or $(NODE),NODE)

node-start: cluster ## Turn a node on again (NODE=2)
	@bin/cluster node start $(or $(NODE),NODE)

up: ## Start everything for development and write .run/env (again is fine)
	@engines/dev.sh up

down: ## Stop everything that runs for this checkout (again is fine)
	@engines/dev.sh down

status: ## Say what runs for this checkout
	@engines/dev.sh status

ci: ## Do what CI does, apart from what runs already
	@bash .ci/run

clean: ## Stop everything and delete what was built and stored, databases and registry included
	@[ ! -x bin/cluster ] || bin/cluster clean
	@engines/dev.sh clean
	rm -rf bin
