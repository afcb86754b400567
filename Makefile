# Every task a person needs. `make` alone explains them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Values of yours for the charts slurm and slurm-operator, for `make up` into an existing cluster.
VALUES ?=
OPERATOR_VALUES ?=
# How often each fault strikes in `make bench-failover`.
TIMES ?= 1
# How many changes `make bench-configuration` makes, and how many workers take them.
CHANGES ?= 20
WORKERS ?= 4
# How often `make autoscaling` goes from zero workers to four and back.
ROUNDS ?= 3
# Workers of `make bench-scale`, and the command line of the operator it measures; coil when it is empty.
N ?= 1000
OPERATOR ?=
# A KUBECONFIG of the shell is not meant for us: only one given to make is.
ifneq ($(origin KUBECONFIG),command line)
override KUBECONFIG :=
endif
unexport KUBECONFIG
.DEFAULT_GOAL := help
SHELL := /bin/bash -o pipefail
.PHONY: help venv up down test check lint types layers unit test-servers e2e soak bench-runtime bench-build bench-failover bench-configuration bench-scale soak-outage autoscaling images helm4 crds dashboards docs lock lab-build

help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: venv ## Real Kubernetes, real Slurm, a job's output (into your cluster: KUBECONFIG=file, see README)
	@$(BIN)/python -m lab demo $(if $(KUBECONFIG),--kubeconfig $(KUBECONFIG)) \
	  $(if $(VALUES),--values $(VALUES)) $(if $(OPERATOR_VALUES),--operator-values $(OPERATOR_VALUES))

down: venv ## Remove everything that `make up` started on this machine
	@$(BIN)/python -m lab down

test: check test-servers e2e ## Everything: check, real API server, real Slurm daemons, real jobs

check: venv ## Lint, types, layers, docs, unit tests (below 60 s)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target unit types docs lint layers

lint:
	@echo "==> lint"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet

types:
	@echo "==> types"
	@$(BIN)/basedpyright --warnings

layers:
	@echo "==> layers"
	@$(BIN)/lint-imports --no-cache | tail -n 20

unit:
	@echo "==> unit and golden tests"
	@$(BIN)/pytest -q -n 2 tests/unit tests/golden

test-servers: venv lab-build images ## Tests against a misbehaving server, the real API server, real Slurm daemons
	@echo "==> tests against real servers"
	@$(BIN)/python -m lab build kwok
	@$(BIN)/pytest -q -n 2 --dist loadfile tests/wire tests/apiserver tests/slurm tests/images tests/charts tests/scale

e2e: venv ## Tests with real pods and real jobs in the lab
	@$(BIN)/python -m lab demo
	@$(BIN)/pytest -q -n 2 --dist loadfile -m "not alone" tests/lab tests/e2e
	@$(BIN)/pytest -q -s -m alone tests/lab tests/e2e

soak: venv ## Ten minutes of trouble around a stream of real jobs; pace of scale-in and roll; a machine lost
	@$(BIN)/python -m lab demo
	@COIL_SOAK_SECONDS=$${COIL_SOAK_SECONDS:-600} $(BIN)/pytest -q -s -p no:randomly \
	  tests/e2e/test_chaos.py tests/e2e/test_pace.py tests/e2e/test_lost_node.py \
	  tests/apiserver/test_nodeset_machines.py

bench-runtime: venv ## 5,000 pods and nodes through reflector, store and queue, beside json and dicts
	@$(BIN)/python -m benchmarks.runtime

bench-build: venv ## Stamping pods and reading hostlists at size, beside the obvious way
	@$(BIN)/python -m benchmarks.build

bench-failover: venv ## sbatch after faults of slurmctld, with and without backups (TIMES=10; needs `make up`)
	@$(BIN)/python -m benchmarks.failover --times $(TIMES)

bench-configuration: venv ## From a change until each daemon has it (CHANGES=20, WORKERS=4; needs `make up`)
	@$(BIN)/python -m benchmarks.configuration --changes $(CHANGES) --workers $(WORKERS)

soak-outage: venv ## Operator and webhook down for ten minutes under running jobs (needs `make up`)
	@COIL_OUTAGE_S=600 $(BIN)/pytest -q -s tests/e2e/test_outage.py

autoscaling: venv ## Clusters that scale themselves, with KEDA and without (ROUNDS=3; the first time builds KEDA)
	@$(BIN)/python -m lab build keda
	@$(BIN)/python -m lab demo
	@rm -f autoscaling.json
	@COIL_AUTOSCALING=$(ROUNDS) COIL_AUTOSCALING_RECORD=autoscaling.json \
	  $(BIN)/pytest -q -s -p no:randomly tests/e2e/test_autoscaling.py
	@$(BIN)/python -m benchmarks.autoscaling autoscaling.json docs/autoscaling.png

bench-scale: export OPERATOR := $(OPERATOR)
bench-scale: venv ## A NodeSet at size on simulated machines and real Slurm: N=1000, OPERATOR='command' for another
	@$(BIN)/python -m benchmarks.scale $(N) --json $(or $(JSON),scale-$(N).json)

images: venv ## Build the container images into the user cache
	@$(BIN)/python -m lab images

lab-build: venv ## Build Kubernetes and its companions into the user cache
	@$(BIN)/python -m lab build

helm4: venv ## Tests of the charts with Helm 4 (the first time builds it, some minutes)
	@$(BIN)/python -m lab build helm4
	@COIL_HELM=helm4 $(BIN)/pytest -q -n 2 tests/charts

crds: venv ## Write the CRDs from src/coil/api into charts/slurm-operator-crds
	@$(BIN)/coil crds --output charts/slurm-operator-crds/templates

dashboards: venv ## Write the Grafana boards into charts/slurm-operator
	@$(BIN)/python -m dashboards charts/slurm-operator/monitoring/boards

docs: venv ## Build the documentation into docs/_build/html, without a warning
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --jobs 2 docs docs/_build/html
	@echo "docs/_build/html/index.html"

venv: $(VENV)/.ready ## Make the Python environment from the hashed lock

$(VENV)/.ready: requirements/dev.lock pyproject.toml
	@echo "==> Python environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements/dev.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

lock: ## Rewrite the hashed requirement locks from pyproject.toml
	@uv pip compile --universal --generate-hashes --no-header --quiet pyproject.toml -o requirements/runtime.lock
	@uv pip compile --universal --generate-hashes --no-header --quiet pyproject.toml --group dev -o requirements/dev.lock
