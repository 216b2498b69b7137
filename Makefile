# Two commands do everything on a fresh machine: `make demo` and `make test`.
SHELL := /bin/sh
GO ?= go
BIN := bin/turnpack
PLUMB := bin/plumb
TURNPACK := ./examples/turnpack
# The packages of the three modules of go.work: the library, the object stores, the command.
ALL := ./examples/turnpack/... ./export/blobstore/... ./...
# Without the folder in what is compiled, another checkout compiles only what differs.
export GOFLAGS := $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath
# Twice as many packages at once as processors, so that none idles while tests wait.
TEST := $(GO) test -vet=off -p $$(($$(getconf _NPROCESSORS_ONLN) * 2))
# Only tokenize/hf links the static library; the tag keeps it out of every other build.
LIBDIR = $$(sh internal/libtokenizers/build.sh)
HF := CGO_ENABLED=1 CGO_LDFLAGS="-L$(LIBDIR)"
# A smoke test in `make check`; give a time, as in FUZZTIME=60s, to search.
FUZZTIME ?= 2000x

.PHONY: demo service-demo learn test check notices notices-current tidy bench conformance trainers build build-hf lib fmt analyse race fuzz benchonce cross consumer hf-test beam clients clean help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile

build: ## build the command and plumb without cgo into bin/
	@CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN) $(TURNPACK)
	@CGO_ENABLED=0 $(GO) build -trimpath -o $(PLUMB) ./internal/plumb

lib: ## build or download libtokenizers.a into the user cache directory
	@dir="$$(sh internal/libtokenizers/build.sh)" && echo "libtokenizers.a is in $$dir"

build-hf: lib ## build both with the Hugging Face engine into bin/turnpack-hf and bin/plumb-hf
	@$(HF) $(GO) build -tags turnpack_hf -o $(BIN)-hf $(TURNPACK)
	@$(HF) $(GO) build -tags turnpack_hf -o $(PLUMB)-hf ./internal/plumb

demo: build ## the main job on the embedded tokenizer and sample dump
	@$(BIN) demo

service-demo: ## the service with an engine without a model, and Python's openai and anthropic clients as agents (PyPI)
	@CGO_ENABLED=0 $(GO) build -trimpath -o bin/service ./examples/service
	@PYTHON="$${PYTHON:-$$(sh internal/oracle/python.sh live 2>/dev/null || echo python3)}" CGO_ENABLED=0 $(GO) run ./examples/service/demo bin/service tokenize/embedded examples/service/demo/agents.py

# Flags of examples/learn, as in LEARN='--seeds 1 --arms lookup'.
LEARN ?=
learn: ## the closed loop on the CPU: a tiny model learns to call a tool, with and without the usual faults (PyPI: torch, once)
	@CGO_ENABLED=0 $(GO) build -trimpath -o bin/learn ./examples/learn
	@rm -rf bin/learned && python="$$(sh internal/oracle/python.sh learn)" && bin/learn --python "$$python" --out bin/learned $(LEARN) && \
	  "$$python" examples/learn/plot.py bin/learned/results.jsonl --svg bin/learned/learn.svg && echo "bin/learned/learn.svg"

test: ## all tests, those with Python's openai and anthropic clients too where PyPI has them
	@[ -d ../shared ] || echo "SKIPPED: the conformance kits and recorded dumps: there is no folder shared beside the checkout; tests with what the checkout holds run"
	@python=$$(PIP_RETRIES=1 PIP_DEFAULT_TIMEOUT=10 sh internal/oracle/python.sh live 2>/dev/null) || \
	  echo "SKIPPED: the proxy with Python's openai and anthropic clients: they do not install from here (sh internal/oracle/python.sh live says why)"; \
	TURNPACK_LIVE_PYTHON=$$python CGO_ENABLED=0 $(TEST) $(ALL)
	@$(MAKE) --no-print-directory hf-test

hf-test: lib ## the tests that link libtokenizers.a
	@$(HF) $(GO) test -vet=off -tags turnpack_hf ./tokenize/hf/...

check: fmt analyse notices-current test race cross consumer ## what a change must pass; CI runs fuzz and benchonce too

fmt: ## fail on files that gofmt would change
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "gofmt would change:"; echo "$$out"; exit 1; }

# Memory for time: analyse and cross read all packages once and end.
READER := GOGC=400 CGO_ENABLED=0
analyse: ## the checks of staticcheck, pinned by internal/devtools, and of go vet
	@GOWORK=off CGO_ENABLED=0 $(GO) build -C internal/devtools -buildvcs=false -o $(CURDIR)/bin/analyse ./analyse
	@$(READER) bin/analyse $(ALL)

NOTICES := internal/devtools/notices.go
notices: ## write the licences of what the command is made of, after a change of go.mod
	@$(GO) run $(NOTICES) $(TURNPACK) $(TURNPACK)/THIRD_PARTY_NOTICES
	@$(GO) run $(NOTICES) internal/libtokenizers/Cargo.lock tokenize/hf/THIRD_PARTY_NOTICES

notices-current: ## fail if they are of other modules
	@$(GO) run $(NOTICES) -check $(TURNPACK) $(TURNPACK)/THIRD_PARTY_NOTICES
	@$(GO) run $(NOTICES) -check internal/libtokenizers/Cargo.lock tokenize/hf/THIRD_PARTY_NOTICES

tidy: ## go mod tidy for each module of go.work (needs the module proxy)
	@sh internal/devtools/tidy.sh

race: ## concurrent packages under the race detector
	@sh internal/devtools/race.sh

fuzz: ## every fuzz target for FUZZTIME
	@sh internal/devtools/fuzz.sh $(FUZZTIME)

benchonce: ## every benchmark once
	@CGO_ENABLED=0 $(GO) test -run '^$$' -bench . -benchtime 1x >/dev/null \
	  $$(git grep -l '^func Benchmark' -- '*_test.go' ':!tokenize/hf' | xargs -n 1 dirname | sort -u | sed 's,^,./,')

bench: build ## ratios against the named peers, in one run (needs PyPI)
	@sh internal/oracle/bench.sh

conformance: build ## re-derive the goldens with the real systems (needs PyPI; 45 minutes, TURNPACK_TEXTS=2000: minutes)
	@sh internal/oracle/conformance.sh

PYTHON ?= python3
trainers: build ## the tests of examples/trainers (needs pytest and pyarrow; runs the trainers that are installed; TURNPACK_SLIME, TURNPACK_NEMO_RL, TURNPACK_PRIME_RL, TURNPACK_MEGATRON_BRIDGE with TURNPACK_MEGATRON_LM=CHECKOUT those)
	@if $(PYTHON) -c 'import pytest, pyarrow' 2>/dev/null; then \
	  PYTHONPATH=examples/trainers TURNPACK_BIN=$(CURDIR)/$(BIN) $(PYTHON) -m pytest -q -rs --disable-warnings -p no:cacheprovider examples/trainers/tests; \
	else echo "SKIPPED: $(PYTHON) has no pytest or no pyarrow: pip install './examples/trainers[test]', or name another by PYTHON=..."; fi

cross: ## type-check everything, tests too, for the other systems, without cgo
	@GOWORK=off CGO_ENABLED=0 $(GO) build -C internal/devtools -buildvcs=false -o $(CURDIR)/bin/cross ./cross
	@$(READER) bin/cross $(ALL)

consumer: ## a module that imports the library as a user would
	@cd internal/testdata/consumer && GOWORK=off CGO_ENABLED=0 $(GO) test ./...

beam: ## the tests of the Beam example, a module of its own (Beam takes minutes to compile, so not in check)
	@cd examples/beam && GOWORK=off CGO_ENABLED=0 $(GO) test ./...

clients: ## the proxy with the Go clients of OpenAI and Anthropic, a module of its own (they take minutes to compile, so not in check), and with the Python ones
	@cd internal/testdata/clients && GOWORK=off CGO_ENABLED=0 $(GO) test ./...
	@TURNPACK_LIVE_PYTHON=$$(sh internal/oracle/python.sh live) CGO_ENABLED=0 $(GO) test ./rollout/proxy -run TestPythonClients -v

clean:
	@rm -rf bin batch
