# `make help` lists the targets. Nothing but Python 3.11+, git and make is expected to be installed.
.DEFAULT_GOAL := help
SHELL := /bin/sh

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	if $$p -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo $$p; break; fi; done)
VENV := .venv
BIN := $(VENV)/bin

MINUTES ?= 15
HARNESSES ?= build/harnesses
WORKERS ?= 2
PIP = $(BIN)/python -m pip --quiet --disable-pip-version-check
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

UPGRADE ?= --upgrade
COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header \
	--no-emit-index-url pyproject.toml $(UPGRADE)
# Each library is called by the tests of one of these: pyzmq, starlette, uvicorn, httptools, prometheus-client, httpx,
# setproctitle, structlog, the SDK of MCP, apsw, sqlite-vec, numpy, onnxruntime, click, rich, markdown-it, pyyaml, msgspec.
LIBRARY_TESTS = $(addprefix tests/,actor/test_bus_client.py actor/test_child_process.py actor/test_gateway_edge.py actor/test_gateway_metrics.py \
	actor/test_llm_servers.py actor/test_logs.py actor/test_mcp_endpoint.py store/test_backup.py store/test_group_commit.py \
	store/test_token_similarity.py unit/test_binary_quantization.py unit/test_cli_commands.py unit/test_client_http.py \
	unit/test_config_load.py unit/test_markdown_files.py unit/test_minilm.py unit/test_operation_requests.py \
	unit/test_terminal_screens.py)
TEST_TOOLS = flit_core grimp hypothesis import-linter pytest pytest-timeout pytest-xdist tokenizers

.PHONY: help install install-mcp install-dev third-party wheel wheels-check run demo test test-browser test-fast test-lowest test-lowest-libraries hostile chaos soak sim sim-pipeline harnesses check lint format lock bench bench-100k \
	bench-searchers bench-isolation bench-pipeline bench-recall bench-stages bench-generality bench-questions clean

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

# The interpreter of the environment can go with an upgrade of Python, and what is installed can be of another time: the stamp
# has the part of pyproject.toml before the settings of the tools. Then all is installed again.
METADATA = sed '/^\[tool\.ruff\]/,$$d' pyproject.toml
ifneq ($(shell $(METADATA) | cmp -s - $(VENV)/.installed && $(BIN)/python -c 'import click; print("runs")' 2>/dev/null),runs)
$(VENV)/.installed: out-of-date
.PHONY: out-of-date
out-of-date:
endif

# Of the libraries, only the modules that a process imports are compiled; the tests of libraries, and pip, which is needed
# once, are removed: together a quarter of the installation.
$(VENV)/.installed: requirements.lock ops/third_party.py signet_actors/cli/third_party_files.py
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed (none found)." >&2; exit 1; }
	@echo 'Installing into $(VENV) ...'
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m ensurepip >/dev/null
	@$(PIP) install --no-compile --require-hashes -r requirements.lock
	@$(BIN)/python ops/third_party.py
	@$(PIP) install --no-compile --no-deps --no-build-isolation -e .
	@$(BIN)/python ops/compile_imported.py
	@find $(VENV)/lib -type d -name tests -prune -exec rm -r {} +
	@$(PIP) uninstall --yes pip setuptools 2>/dev/null
	@$(METADATA) > $@
	@echo 'Installed. Next: export PATH="$$PWD/$(BIN):$$PATH" && signet setup'

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	$(BIN)/python -m ensurepip >/dev/null
	$(PIP) install --require-hashes -r requirements-dev.lock
	@$(BIN)/python ops/third_party.py --multilingual || echo 'Its tests are skipped.' >&2
	@touch $@

install: $(VENV)/.installed ## make .venv with .venv/bin/signet in it

install-mcp: install # of earlier releases, in which the memory tools were an extra

$(VENV)/.installed-browser: $(VENV)/.installed-dev requirements-browser.lock
	$(BIN)/python -m ensurepip >/dev/null
	$(PIP) install --require-hashes -r requirements-browser.lock
	@touch $@

install-dev: $(VENV)/.installed-dev ## the same, with the tools for tests and checks

third-party: ## fetch the files of other projects that are part of the package: models, API page
	@$(or $(wildcard $(BIN)/python),$(PYTHON)) ops/third_party.py

wheel: install ## build dist/*.whl, which uv, pipx and pip install anywhere
	rm -f dist/signet_actors-*.whl && mkdir -p dist
	@PYTHONPATH=ops $(BIN)/python -c "import build_backend; print('dist/' + build_backend.build_wheel('dist'))"

wheels-check: install-dev ## whether every locked package has a wheel, for each platform and version of Python
	$(PIP) install uv
	$(BIN)/python ops/wheels_check.py

run: install ## install, then run the daemon in the foreground
	$(BIN)/signet up

demo: install ## the whole main job on a throw-away workspace; ends by itself
	$(BIN)/python -m bench.demo

# More than there are processors: a third of the time a test waits for a daemon.
test: WORKERS = 3
test: install-dev ## all tests with bounded faults but those in a browser, in WORKERS=3 processes
	$(PYTEST) -m "not browser"

test-browser: $(VENV)/.installed-browser ## the page in a real browser (chromium and a font: apt-get install chromium fonts-dejavu-core)
	SIGNET_BROWSER=required $(PYTEST) tests/browser

test-fast: install-dev ## the tests that start no daemon
	$(PYTEST) -m "not system and not slow and not browser" -q

hostile: install-dev ## hostile and random input, the long variant (some hours); SIGNET_HOSTILE_SEED=n for another seed
	SIGNET_HOSTILE=long $(BIN)/python -m pytest -s tests/hostile

chaos: install-dev ## every crash point with every fault, then MINUTES of random kills and stops under load
	SIGNET_CHAOS_FULL=1 $(BIN)/python -m pytest tests/chaos $$(grep -l tests.chaos.seeds tests/store/*.py tests/system/*.py)
	$(BIN)/python -m tests.chaos.run --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) --json build/chaos.json

harnesses: install ## real agent programs against a scripted model (root, npm, 1.7 GB); ONLY=claude-code,codex SKIP=delay
	test -d $(HARNESSES)/npm/node_modules || $(BIN)/python tests/harnesses/run.py install --root $(HARNESSES)
	$(BIN)/python tests/harnesses/run.py run --root $(HARNESSES) --signet $(BIN) $(if $(ONLY),--only $(ONLY)) $(if $(SKIP),--skip $(SKIP))

check: lint test-fast ## format, lint, types, import contracts, fast tests

lint: install-dev ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini tests
	$(BIN)/lint-imports

format: install-dev ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: install-dev ## resolve the dependencies anew into the hashed locks; UPGRADE= keeps the versions of the old ones
	$(PIP) install uv
	$(COMPILE) --group build --output-file requirements.lock
	$(COMPILE) --group dev --output-file requirements-dev.lock
	$(subst pyproject.toml,,$(COMPILE)) --group pyproject.toml:browser --constraint requirements-dev.lock --output-file requirements-browser.lock

test-lowest: install-dev ## the fast tests with the lowest versions that pyproject.toml allows, in build/lowest
	$(PIP) install uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/lowest
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --no-header pyproject.toml --output-file build/lowest.txt
	$(BIN)/uv pip install --quiet --python build/lowest/bin/python -r build/lowest.txt $(TEST_TOOLS)
	PYTHONPATH=$(CURDIR) build/lowest/bin/python -m pytest -n $(WORKERS) --dist loadfile -m "not system and not slow" -q \
		--ignore tests/hostile/test_document.py $(TESTS) # the tool of the ignored file needs newer versions

test-lowest-libraries: TESTS = $(LIBRARY_TESTS)
test-lowest-libraries: WORKERS = 3
test-lowest-libraries: test-lowest ## of these only tests of the modules that call the libraries, in a minute or two

soak: chaos hostile sim sim-pipeline ## all long forms of the tests with random faults, before a release: hours

sim: install-dev ## writer, queue, leases and supervisor in virtual time: SEEDS=2000 runs from seed FIRST=1 on
	$(BIN)/python -m tests.sim.run --seeds $(or $(SEEDS),2000) --first $(or $(FIRST),1) $(if $(JOBS),--jobs $(JOBS))

sim-pipeline: install-dev ## extractor, decider, leases and writer in virtual time: SEEDS=10000 runs from seed FIRST=1 on
	$(BIN)/python -m tests.sim.pipeline --seeds $(or $(SEEDS),10000) --first $(or $(FIRST),1) $(if $(JOBS),--jobs $(JOBS))

bench: install ## write and recall figures at 1 k and 10 k memories against a live daemon
	$(BIN)/python -m bench.load

bench-100k: install ## the same up to 100 k memories
	$(BIN)/python -m bench.load --memories 1000,10000,100000

bench-searchers: install ## throughput and CPU per recall with 1, 2 and 3 searcher processes
	$(BIN)/python -m bench.searchers --memories 10000 --searchers 1,2,3

bench-isolation: install ## 32 clients with and without sweep, backup, import and scrape beside them
	$(BIN)/python -m bench.isolation

bench-pipeline: install ## recall and remember beside a hung model, and extract jobs a second
	$(BIN)/python -m bench.pipeline

bench-recall: install ## evidence recall on a LoCoMo file: make bench-recall LOCOMO=path/to/file.json
	$(BIN)/python -m bench.locomo $(LOCOMO)

bench-stages: install ## what each stage of a recall is worth and costs: make bench-stages LOCOMO=path/to/file.json
	$(BIN)/python -m bench.ablation $(LOCOMO)

bench-generality: install ## recall on facts, mixed and short stores and German; LOCOMO=path/to/file.json, else generated
	$(BIN)/python -m bench.generality $(LOCOMO)

bench-questions: install ## the rank of the right note for 60 questions of a coding agent
	$(BIN)/python -m bench.natural_questions

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
