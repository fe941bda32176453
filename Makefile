# Requires Python 3.11 or newer and make. Everything else is installed into .venv.
PYTHON ?= python3
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
# The stamp file contains the installed extras, so that a later `make` without EXTRAS keeps them.
INSTALLED := $(shell cat $(STAMP) 2> /dev/null)
EXTRAS ?= $(INSTALLED)
SERVICES := $(or $(SERVICES_VENV),.services)
MEASURE := .measure
WEB := ai_platform_engineering/ui/web
PAGE := ai_platform_engineering/ui/built/index.html
PAGE_SOURCES := $(shell find $(WEB) -path $(WEB)/node_modules -prune -o -path $(WEB)/built-tests -prune -o -type f -print)
PACKAGES ?=
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"
ALWAYS := --extra openai --extra embeddings --extra fastmcp --extra postgres --extra slack
ALL_EXTRAS = $(patsubst locks/%.lock,%,$(wildcard locks/*.lock))

# An awk program that prints the entries of the second lock that are not in the first.
NOT_IN_FIRST = NR == FNR {present[$$0]; next} /^[^ \#]/ {skipped = $$0 in present} !skipped

.DEFAULT_GOAL := help
.PHONY: help setup services measure run test test-fast test-slow properties check format quick-sanity bench coverage \
	mutants docs lock clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) $(PAGE) ## Install product and tools into .venv, build the page; EXTRAS="aws groq" adds model providers, AGENTS="jira" MCP servers.
	@$(if $(AGENTS),$(BIN)/platform-engineer agents install $(AGENTS))

services: setup ## Install the servers that tests use into .services.
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(SERVICES)
	@$(BIN)/uv pip sync --quiet --python $(SERVICES)/bin/python --require-hashes .ci/services.txt

run: setup ## Start the supervisor (see README.md for a first question).
	@$(BIN)/platform-engineer serve

test: setup check ## Run the checks and the tests, on all cores; SUITE=all adds the slow tests.
	$(BIN)/python -m tests.suite $(or $(SUITE),default) $(PYTEST_ARGS)

test-fast: setup ## Run the tests that start no process and take no second, in under a minute.
	$(BIN)/python -m tests.suite fast $(PYTEST_ARGS)

properties: setup ## Run the property-based tests with other random examples than `make test`.
	$(BIN)/python -m tests.suite properties $(PYTEST_ARGS)

test-slow: setup ## Run the slow tests, which take minutes.
	$(BIN)/python -m tests.suite slow $(PYTEST_ARGS)

check: setup ## Check lint rules, formatting, types, imports between packages, and the types of the page.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers auto
	$(BIN)/lint-imports --no-cache
	UV=$(CURDIR)/$(BIN)/uv $(WEB)/page check

format: setup ## Format the code and apply automatic lint fixes.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

quick-sanity: setup ## Start the supervisor with two remote agents and check their event streams.
	$(BIN)/python -m integration.quick_sanity $(PYTEST_ARGS)

bench: setup ## Run the benchmarks.
	$(BIN)/python -m benchmarks

# Coverage and mutation tools have a separate environment, so that `make setup` stays small.
measure: setup
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(MEASURE)
	@locks=$$(locks/select $(EXTRAS)) && $(BIN)/uv pip sync --quiet --python $(MEASURE)/bin/python --require-hashes \
		requirements.lock $$locks .ci/measure.txt
	@$(BIN)/uv pip install --quiet --python $(MEASURE)/bin/python --no-deps --no-build-isolation --editable .

coverage: measure ## Run the tests with branch coverage, processes included; PYTEST_ARGS=tests/runs selects tests.
	$(MEASURE)/bin/coverage erase
	$(MEASURE)/bin/python -m $(if $(PYTEST_ARGS),pytest $(PYTEST_ARGS),tests.suite default) --cov --cov-append --cov-report=
	$(MEASURE)/bin/coverage report --skip-covered --skip-empty
	$(MEASURE)/bin/coverage html --quiet

mutants: measure ## Run mutation tests (hours); PACKAGES="runs forms" selects packages, SAMPLE=200 limits the number of mutants.
	$(MEASURE)/bin/python -m mutation $(PACKAGES) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

docs: setup ## Generate docs/configuration.md from the settings.
	$(BIN)/python -m ai_platform_engineering.settings > docs/configuration.md

# All extras are resolved together first, so that any combination of locks can be installed.
lock: setup ## Update all dependencies in requirements.lock, locks/, .ci/ and the locks of MCP servers.
	$(COMPILE) --upgrade --all-extras --group dev --output-file $(VENV)/all.lock pyproject.toml
	$(COMPILE) --upgrade --constraints $(VENV)/all.lock $(ALWAYS) --group dev --output-file requirements.lock pyproject.toml
	@for extra in $(ALL_EXTRAS); do \
		$(COMPILE) --upgrade --constraints $(VENV)/all.lock --extra $$extra --output-file $(VENV)/extra.lock pyproject.toml && \
		awk '$(NOT_IN_FIRST)' requirements.lock $(VENV)/extra.lock > locks/$$extra.lock || exit; \
	done
	$(COMPILE) --upgrade --no-deps --output-file .ci/services.txt .ci/services.in
	$(COMPILE) --upgrade --constraints requirements.lock --output-file $(VENV)/extra.lock .ci/measure.in
	awk '$(NOT_IN_FIRST)' requirements.lock $(VENV)/extra.lock > .ci/measure.txt
	locks/servers $(BIN)

clean: ## Remove .venv, .services, the built page and the caches.
	rm -rf $(VENV) .services $(MEASURE) .node ai_platform_engineering/ui/built $(WEB)/node_modules $(WEB)/built-tests .mutants .coverage .coverage.* htmlcov .mypy_cache .pytest_cache .ruff_cache .hypothesis dist

# Installs uv from PyPI in the version of the lock, checked against its hashes; uv installs the rest.
$(STAMP): requirements.lock pyproject.toml $(wildcard locks/*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is not Python 3.11 or newer: run make with PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@awk '/^[^ #]/ {wanted = /^uv==/} wanted' requirements.lock > $(VENV)/uv.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt
	@locks=$$(locks/select $(EXTRAS)) && \
		$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes --compile-bytecode requirements.lock $$locks
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@echo "$(strip $(EXTRAS))" > $@

# Without Node.js and without PyPI, everything but the page works; the page's address says how to get it.
$(PAGE): $(PAGE_SOURCES) | $(STAMP)
	@UV=$(CURDIR)/$(BIN)/uv $(WEB)/page build || echo "The web page was not built: that needs Node.js 20 or newer."

ifneq ($(strip $(EXTRAS)),$(INSTALLED))
.PHONY: $(STAMP)
endif
