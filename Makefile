# Everything sets itself up: `make test` on a machine with python3 and pip is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WEB := src/dragoman/web_assets/index.html
PYTEST_ARGS ?=
# Python keeps what it has compiled, whatever it is told outside: tests start it thousands of times.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup web test test-long test-real test-real-latest soak fuzz kills reliability lint types collect unit again web-test browser boxes serve bench bench-real bench-web coverage release docs lock clean

help: ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

setup: $(READY) $(WEB) ## make .venv with everything pinned by requirements/dev.lock

$(READY): pyproject.toml requirements/dev.lock src/dragoman/__init__.py  # which has the version
	@test -e $@ || echo "Setting up in $(VENV), about a minute the first time…"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

web: $(WEB) ## build the web chat, when its sources changed

$(WEB): $(READY) web/build.py web/index.html web/reader.html web/package-lock.json web/tsconfig.json web/vite.config.ts web/licences.ts $(shell find web/src web/public -type f)
	@echo "Building the web chat…"
	@$(BIN)/python web/build.py
	@touch $@

test: $(READY) ## all checks and tests
	@$(MAKE) --no-print-directory -j2 lint types web-test collect  # one core each, then all for the tests
	@$(MAKE) --no-print-directory unit

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

collect: $(READY)  # compiles the tests once: their workers, which start together, would do it once each
	@$(BIN)/python -m pytest --collect-only -qq >$(VENV)/collected 2>&1 || { cat $(VENV)/collected; exit 1; }
	@$(BIN)/python tests/support/processes/fork_server_program.py compile

web-test: $(WEB) ## the web chat's own checks
	$(BIN)/python web/build.py check

browser: ## chromium for the browser tests, where we may install it
	@command -v chromium-headless-shell >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		timeout 300 sh -c 'apt-get update -qq && export DEBIAN_FRONTEND=noninteractive && \
			for one in chromium-headless-shell chromium; do apt-get install -y -qq --no-install-recommends $$one && exit; done' >/dev/null 2>&1; } || \
		command -v chromium >/dev/null || \
		echo "NO CHROMIUM: the browser tests in tests/web are skipped (apt-get install chromium)"

boxes: ## bubblewrap, sshd and podman for the sandbox tests, where we may install them
	@tests/install_parts.sh

# More workers than cores: a test waits for processes, timers and disks about a third of its time.
unit: $(READY) $(WEB) browser boxes
	$(BIN)/python -m pytest -n 6 --dist loadgroup $(PYTEST_ARGS)

again: $(READY) $(WEB) ## TESTS twenty times over (TIMES=N), beside other load: `make again TESTS=tests/store`
	$(BIN)/python -m pytest -n 4 --dist loadgroup -x --count $(or $(TIMES),20) $(TESTS) $(PYTEST_ARGS)

coverage: $(READY) $(WEB) ## lines and branches that TESTS run (all of `make test` unless given), also as .cache/coverage/html
	@$(BIN)/python -m coverage --version >/dev/null 2>&1 || \
		$(BIN)/uv pip install --quiet --python $(BIN)/python 'coverage>=7.10'
	@rm -rf .cache/coverage && mkdir -p .cache/coverage
	$(BIN)/python -m coverage run -m pytest -n 4 --dist loadgroup $(TESTS) $(PYTEST_ARGS); result=$$?; \
	$(BIN)/python -m coverage combine --quiet && $(BIN)/python -m coverage report && \
	$(BIN)/python -m coverage html --quiet; exit $$result

# By itself: two workers would start the same Compose project at once.
CONTAINER := tests/deploy/test_container.py
test-long: $(READY) $(WEB) browser ## tests that take longer than their share of `make test`
	@tests/install_parts.sh long
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m long --ignore=$(CONTAINER) $(PYTEST_ARGS); result=$$?; \
	$(BIN)/python -m pytest -m long $(CONTAINER) $(PYTEST_ARGS) && exit $$result

soak: $(READY) $(WEB) ## faults, floods and fuzzing in their full form: half an hour, then ROUNDS of fuzzing, which add up
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/fuzz.lock
	PYTHONPATH=tests $(BIN)/python -m fuzz.soak $(ROUNDS) $(SOAK_ARGS)

reliability: $(READY) $(WEB) browser boxes ## run the fault matrix of docs/reference/reliability.md and write its results
	PYTHONPATH=tests $(BIN)/python -m support.reliability "$(ROW)"

kills: $(READY) ## kill -9 of gateways whose sessions stream, ROUNDS of it (1,000), which add up for one revision
	PYTHONPATH=tests $(BIN)/python -m fuzz.kills $(ROUNDS)

fuzz: ## the fuzzing of `make soak` alone
	@$(MAKE) --no-print-directory soak SOAK_ARGS=--fuzz-only

test-real: $(READY) ## real agents from npm, offline against a scripted model
	$(BIN)/python -m pytest -m real tests/real $(PYTEST_ARGS); result=$$?; \
	PYTHONPATH=tests $(BIN)/python -m real.compatibility docs/reference/compatibility.md; exit $$result

serve: $(READY) $(WEB) ## run the gateway; prints its address
	@$(BIN)/dragoman serve

bench: $(READY) ## ratios against other relays, side by side
	$(BIN)/python -m bench

test-real-latest: $(READY) ## the newest version of every real agent: a table, and no failure
	PYTHONPATH=tests $(BIN)/python -m real.latest $(AGENTS)

bench-real: $(READY) ## Claude Code and Codex in their own tongues beside their npm adapters
	PYTHONPATH=tests:. $(BIN)/python -m real.bench

bench-web: $(READY) $(WEB) browser ## the web chat's figures in a browser; WRITE_DOCS=1 puts them into the documentation
	PYTHONPATH=tests:. $(BIN)/python -m support.web.bench $(if $(WRITE_DOCS),--write-docs)

release: $(READY) $(WEB) ## prepare release VERSION up to the upload (docs/how-to/release.md); CHECK=1 changes nothing
	@test -n "$(VERSION)" || { echo "Say which: make release VERSION=0.2.0"; exit 2; }
	@$(BIN)/python tools/release.py $(VERSION) $(if $(CHECK),--check)

DOCS := .cache/docs
DOCS_READY := .cache/docs-venv/.ready
DOCUMENTS := README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md LICENSE docs
docs: $(DOCS_READY) ## build the documentation site into .cache/site; a broken link fails
	@rm -rf $(DOCS) && mkdir -p $(DOCS)/source && cp zensical.toml $(DOCS) && cp -R $(DOCUMENTS) $(DOCS)/source
	@cd $(DOCS) && ../docs-venv/bin/zensical build --strict
	@! grep -rlE --include='*.html' '<(script|link|img|iframe)[^>]*(src|href)="?(https?:)?//' $(DOCS)/site || \
		{ echo "These pages load something from another host"; exit 1; }
	@rm -rf .cache/site && mv $(DOCS)/site .cache/site
	@echo "The site is in .cache/site; for its search: python3 -m http.server -d .cache/site"

$(DOCS_READY): requirements/docs.lock | $(READY)
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python .cache/docs-venv
	@$(BIN)/uv pip install --quiet --python .cache/docs-venv/bin/python --require-hashes -r requirements/docs.lock
	@touch $@

COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url
lock: $(READY) ## refresh the pinned versions: for development, for the container image, for building the wheel there
	$(COMPILE) --extra agent --extra traces --group dev pyproject.toml -o requirements/dev.lock
	$(COMPILE) --extra agent --extra traces --constraint requirements/dev.lock pyproject.toml -o requirements/image.lock
	$(COMPILE) --group build -o requirements/build.lock
	$(COMPILE) --group fuzz -o requirements/fuzz.lock
	$(COMPILE) --group docs -o requirements/docs.lock

clean: ## remove what the targets made
	rm -rf $(VENV) .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build \
		web/node_modules web/dist web/dist-bench src/dragoman/web_assets
