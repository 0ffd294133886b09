# Proa. `make` or `make help` says what there is.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PKG ?= ./...
FUZZTIME ?= 5m
postgres := engines/postgres/run.sh
tool := engines/tools/tool.sh

.PHONY: help tools build test test-db lint fuzz bench up down status ci clean

help: ## Say what each target does
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

tools: ## Build the pinned golangci-lint and govulncheck, once for this machine
	@$(tool) golangci-lint
	@$(tool) govulncheck

build: ## Build every program into bin/
	go build -o bin/ ./cmd/...

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

up: ## Start everything for development and write .run/env (again is fine)
	@engines/dev.sh up

down: ## Stop everything that runs for this checkout (again is fine)
	@engines/dev.sh down

status: ## Say what runs for this checkout
	@engines/dev.sh status

ci: ## Do what CI does, apart from what runs already
	@bash .ci/run

clean: ## Stop everything and delete what was built and stored, databases included
	@engines/dev.sh clean
	rm -rf bin
