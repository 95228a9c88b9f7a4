# Everything sets itself up: `make test` on a machine with python3 and pip is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST_ARGS ?=

.PHONY: help setup test test-real soak lint types unit serve bench lock clean

help: ## show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

setup: $(READY) ## make .venv with everything pinned by requirements/dev.lock

$(READY): pyproject.toml requirements/dev.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

test: lint types unit ## all checks and tests

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

unit: $(READY)
	$(BIN)/python -m pytest -n 4 $(PYTEST_ARGS)

soak: $(READY) ## faults and seams in their full form, for a quarter of an hour or so
	$(BIN)/python -m pytest -m soak -o timeout=3600 tests/sessions/soak $(PYTEST_ARGS)

test-real: $(READY) ## real agents from npm, offline against a scripted model
	$(BIN)/python -m pytest -m real tests/real $(PYTEST_ARGS)

serve: $(READY) ## run the gateway; prints its address
	$(BIN)/dragoman serve

bench: $(READY) ## ratios against other relays, side by side
	$(BIN)/python -m bench

lock: $(READY) ## refresh the pinned versions
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
		--no-emit-index-url --extra agent --group dev pyproject.toml -o requirements/dev.lock

clean: ## remove what the targets made
	rm -rf $(VENV) .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
