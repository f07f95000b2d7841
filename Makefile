# Every target sets up what it needs. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
VIEWER := dashboards/viewer
PICTURES := dashboards/pictures
NO_REGISTRY := ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|ETIMEDOUT
NOX = PATH="$$PATH:$$(ls -d $$HOME/.pyenv/versions/3.1*/bin 2>/dev/null | paste -sd:)" \
  $(BIN)/nox --no-error-on-missing-interpreters
ENGINE_STAMP := $(VENV)/.engine
GO ?= go
OCB := go.opentelemetry.io/collector/cmd/builder@v0.165.0
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
COLLECTOR := $(CURDIR)/dist/otelcol-context-ledger
NEED_GO = command -v $(GO) >/dev/null || { \
  echo "the collector needs Go 1.26 or newer (https://go.dev/dl); everything else here works without it"; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help setup generate format check check-viewer viewer pictures test fuzz matrix clients peers clickhouse demo bench bench-peers build \
  collector generate-collector check-collector test-collector test-scale-out bench-collector soak-collector clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

setup: $(STAMP) ## make the environment .venv

$(STAMP): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.10 or newer is needed; set PYTHON=…"; exit 1; }
	@echo "setting up $(VENV) (half a minute the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "on Debian: apt-get install python3-venv"; exit 1; }
	@$(BIN)/pip install -q --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/pip install -q --disable-pip-version-check --group dev -e ".[otlp]"
	@touch $@

$(ENGINE_STAMP): $(STAMP)
	@$(BIN)/pip install -q --disable-pip-version-check --group engine
	@touch $@

generate: $(STAMP) ## write everything that comes from spec/registry, and the boards
	$(BIN)/python tools/generate.py
	$(BIN)/python -m dashboards

format: $(STAMP) ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: $(STAMP) ## formatting, lint, types, layers, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/generate.py --check
	$(BIN)/python -m dashboards --check
	@$(MAKE) -s check-viewer

# Without the registry of npm the page is what it was; any other fault is one.
check-viewer: ## types of the viewer's page, and whether it is what its sources say (skipped without Node)
	@if ! command -v node >/dev/null || ! command -v npm >/dev/null; then \
	  echo "the viewer's page is not looked at: there is no Node here"; \
	elif mkdir -p .cache && npm --prefix $(VIEWER) ci --ignore-scripts > .cache/npm.log 2>&1; then \
	  npm --prefix $(VIEWER) run -s check; \
	elif grep -qE '$(NO_REGISTRY)' .cache/npm.log; then \
	  echo "the viewer's page is not looked at: npm reaches no registry"; \
	else cat .cache/npm.log; exit 1; fi

viewer: ## write the page of `context-ledger dashboard` from dashboards/viewer (needs Node 18 or newer)
	npm --prefix $(VIEWER) ci --ignore-scripts --silent
	npm --prefix $(VIEWER) run -s check-types
	npm --prefix $(VIEWER) run -s build

# Without what npm's registry has nothing is drawn; any other fault is one.
pictures: $(STAMP) ## the boards as Grafana's own components draw them, held to kept pictures (RENEW=1 keeps what is drawn)
	@if ! command -v node >/dev/null || ! command -v npm >/dev/null; then \
	  echo "no pictures are looked at: there is no Node here"; \
	elif mkdir -p .cache && npm --prefix $(PICTURES) ci --ignore-scripts > .cache/npm.log 2>&1; then \
	  npm --prefix $(PICTURES) run -s check-types && npm --prefix $(PICTURES) run -s build && \
	  $(BIN)/python -m tests.pictures $(if $(RENEW),--renew); \
	elif grep -qE '$(NO_REGISTRY)|code (E[45][0-9][0-9]|ETARGET|ERR_SOCKET_TIMEOUT|EIDLETIMEOUT)' .cache/npm.log; then \
	  echo "no pictures are looked at: npm's registry does not give what they are drawn with"; \
	else cat .cache/npm.log; exit 1; fi

test: $(STAMP) $(ENGINE_STAMP) ## all tests, the real engine included
	$(BIN)/python -m pytest -q

fuzz: $(STAMP) ## hostile programs, providers, settings and files for SECONDS=… (default 300), and every failure of ours
	$(BIN)/python -m tests.fuzz $(or $(SECONDS),300)

matrix: $(STAMP) ## the built wheel under every Python and SDK line found here
	$(NOX) -s wheel

clients: $(STAMP) ## the real clients, each in an environment of its own
	$(NOX) -s clients

peers: $(STAMP) ## other instrumentations beside the ledger, each in an environment of its own
	$(NOX) -s peers

clickhouse: $(STAMP) ## the queries of docs/clickhouse.md on ClickHouse's engine, in an environment of its own (needs Go)
	$(NOX) -s clickhouse

# Where there is no Go, a collector that was built before is taken.
demo: $(STAMP) ## a small coding agent, and what its context cost (ENGINE=llama: a real engine; STACK=1: by the collector)
	@if [ "$$ENGINE" = llama ]; then $(MAKE) -s $(ENGINE_STAMP); fi
	@test -z "$(STACK)" || command -v $(GO) >/dev/null || test -x $(COLLECTOR) || { \
	  echo "STACK=1 runs the demo through the collector, and the collector needs Go 1.26 or newer (https://go.dev/dl)."; \
	  echo "\`make demo\` alone works without it."; exit 1; }
	@if [ -n "$(STACK)" ] && command -v $(GO) >/dev/null; then \
	  if test -x $(COLLECTOR); then echo "building the collector (seconds after the first time)"; \
	  else echo "building the collector (minutes the first time)"; fi; $(MAKE) -s collector; fi
	@$(BIN)/python -m examples.demo $(if $(STACK),--collector $(COLLECTOR))

bench: $(STAMP) ## added CPU per call and per stream event, as shares of the SDK's own
	$(BIN)/python -m benchmarks

bench-peers: $(STAMP) ## the same beside other instrumentations, each in an environment of its own
	$(BIN)/python -m benchmarks.peers

build: $(STAMP) ## the wheel and source archive, into dist/
	$(BIN)/python -m build -q

collector: ## otelcol-context-ledger, the OpenTelemetry Collector with the ledger in it, into dist/ (needs Go)
	@$(NEED_GO)
	cd collector/distribution && CGO_ENABLED=0 $(GO) build -trimpath -ldflags="-s -w" -o $(COLLECTOR) .

# ocb stops at a module that only tests of an exporter need, after it wrote the sources; `tidy -e` goes on without it.
generate-collector: ## write the sources of otelcol-context-ledger from its manifest
	@$(NEED_GO)
	cd collector/distribution && $(GO) run $(OCB) --config manifest.yaml --skip-compilation || true
	cd collector/distribution && $(GO) mod tidy -e && gofmt -w *.go

check-collector: ## formatting, lint and generated sources of the collector
	@$(NEED_GO)
	@cd collector && test -z "$$(gofmt -l . | tee /dev/stderr)"
	cd collector && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	@rm -rf .cache/distribution && mkdir -p .cache/distribution
	@sed 's#output_path: .*#output_path: $(CURDIR)/.cache/distribution#' collector/distribution/manifest.yaml > .cache/manifest.yaml
	@$(GO) run $(OCB) --config .cache/manifest.yaml --skip-compilation --skip-get-modules 2>/dev/null
	@gofmt -w .cache/distribution && for file in .cache/distribution/*.go; do \
	  cmp $$file collector/distribution/$$(basename $$file) || { echo "run make generate-collector"; exit 1; }; done

# Go keeps what a test said of files outside of its module, where the vectors lie: -count=1.
test-collector: collector $(STAMP) ## tests of the collector, with the built binary and, where it is installed, a Prometheus
	cd collector && OTELCOL=$(COLLECTOR) PROMETHEUS="$$(command -v prometheus)" $(GO) test -count=1 -race ./...
	OTELCOL=$(COLLECTOR) $(BIN)/python -m pytest -q tests/test_collector.py tests/test_counted.py tests/test_stack.py \
	  tests/test_live.py tests/test_provisioning.py tests/test_series.py \
	  tests/test_delivery.py

test-scale-out: collector ## the tier of several collectors, against a real Kafka (needs Go, Java 17 and Maven)
	cd collector && OTELCOL=$(COLLECTOR) configs/with-kafka.sh $(GO) test -count=1 -run 'TestScaleOut|TestLedger' ./configs

bench-collector: collector ## the same pipeline with and without the ledger, side by side (Linux; FLAGS="-rounds 9 -strict")
	cd collector && OTELCOL=$(COLLECTOR) $(GO) run ./bench $(FLAGS)

soak-collector: collector ## SPANS=… (default 1,000,000) through collectors with little memory, or killed meanwhile (Linux)
	cd collector && SOAK=$(or $(SPANS),1000000) SPANS=$(or $(SPANS),1000000) OTELCOL=$(COLLECTOR) \
	  $(GO) test -count=1 -v -timeout 60m -run 'TestSoak|TestMemory|Killed$$' ./configs ./soak

clean: ## remove what was made
	rm -rf $(VENV) dist build demo .cache
