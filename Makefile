# Every task a person needs. `make` alone explains them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help venv up down test check e2e bench-runtime images crds lock lab-build

help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(VENV)/.ready ## Make the Python environment from the hashed lock

$(VENV)/.ready: requirements/dev.lock pyproject.toml
	@echo "==> Python environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --require-hashes --requirement requirements/dev.lock
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable . 
	@touch $@

check: venv ## Lint, types, layers and unit tests (below 60 s)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/pytest -n 2 tests/unit tests/golden

lock: ## Rewrite the hashed requirement locks from pyproject.toml
	uv pip compile --universal --generate-hashes --no-header --quiet pyproject.toml -o requirements/runtime.lock
	uv pip compile --universal --generate-hashes --no-header --quiet pyproject.toml --group dev -o requirements/dev.lock
