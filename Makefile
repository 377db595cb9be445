# `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

NODES ?= 3
SCENARIO ?=
INSTALL ?= default
MEASURE ?=
MINUTES ?= 10
SEED ?= 1
export CLUSTER ?= sandbox

# Outside the checkout, so that a fresh clone uses it too.
CACHE := $(or $(ETCDOPS_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/etcdops)
VENV := $(CACHE)/venv-$(shell (python3 --version; cat requirements/dev.txt requirements/collections.txt) 2>/dev/null | sha256sum | cut -c1-12)
PYTHON := $(VENV)/bin/python

export ETCDOPS_CACHE := $(CACHE)
export PATH := $(VENV)/bin:$(PATH)
# The collection (the checkout itself) and kubernetes.core.
export PYTHONPATH := $(CURDIR):$(CURDIR)/.build/collections
# ansible-lint and Molecule link the collection into Ansible's home: use one for each checkout.
export ANSIBLE_HOME := $(CURDIR)/.build/ansible
export ANSIBLE_COLLECTIONS_PATH := $(CURDIR)/.build/collections:$(VENV)/collections

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

.PHONY: setup
setup: $(VENV)/.complete .build/collections/ansible_collections/etcdops/etcd

$(VENV)/.complete:
	@echo "installing Python packages into $(VENV)" >&2
	@mkdir -p $(CACHE)
	@command -v python3 >/dev/null || { echo "python3 is not on PATH. Install Python 3.11 or later." >&2; exit 1; }
	@flock $(CACHE)/venv.lock $(CURDIR)/tools/make-venv $(VENV)

.build/collections/ansible_collections/etcdops/etcd:
	@mkdir -p $(dir $@)
	@ln -sfn $(CURDIR) $@

.PHONY: demo
demo: setup ## Start the sandbox, the operator and a three-member etcd cluster (CLUSTER=current: on your own cluster)
	@tools/demo $(CLUSTER)

.PHONY: test
test: setup ## Run lint, unit tests, the sandbox's own tests and every Molecule scenario
	@tools/test

.PHONY: unit
unit: setup ## Run the unit tests (with real etcd processes) and the simulation
	@$(PYTHON) -m sandbox prepare
	@tools/unit

.PHONY: lint
lint: setup ## Run ruff, mypy, yamllint and ansible-lint
	@tools/lint

.PHONY: sandbox-up
sandbox-up: setup ## Start the sandbox (NODES=3)
	@$(PYTHON) -m sandbox up --nodes $(NODES)

.PHONY: sandbox-down
sandbox-down: setup ## Remove the sandbox
	@$(PYTHON) -m sandbox down

.PHONY: sandbox-status
sandbox-status: setup ## Show the state of the sandbox
	@$(PYTHON) -m sandbox status

.PHONY: kubeconfig
kubeconfig: setup ## Print the path of the sandbox's kubeconfig
	@$(PYTHON) -m sandbox kubeconfig

.PHONY: python
python: setup ## Print the path of the Python with all packages
	@echo $(PYTHON)

.PHONY: molecule
molecule: setup ## Run the Molecule scenarios (SCENARIO=name for one); the sandbox stays up
	@tools/collecting tools/molecule $(SCENARIO)

.PHONY: image
image: setup ## Build the operator's image and print the path of its archive
	@tools/image

.PHONY: deploy
deploy: setup ## Install the operator (INSTALL=namespaced NAMESPACE=…; CLUSTER=current IMAGE=…: on your own cluster)
	@tools/deploy $(INSTALL) $(NAMESPACE)

.PHONY: undeploy
undeploy: setup ## Remove the operator (INSTALL=…; DELETE_CRDS=yes: also the CRDs and all clusters)
	@tools/undeploy $(INSTALL) $(NAMESPACE)

.PHONY: run
run: setup ## Run the operator on this machine, against the cluster of your KUBECONFIG (WATCH_NAMESPACE=…, OPERATOR_IMAGE=…)
	@$(PYTHON) -m tools.run

.PHONY: bench
bench: setup ## Run the benchmarks on the sandbox (MEASURE=name for one)
	@$(PYTHON) -m sandbox up
	@tools/deploy
	@$(PYTHON) -m benchmarks $(MEASURE)

.PHONY: chaos
chaos: setup ## Inject random faults and edits on the sandbox, and check what a client sees (MINUTES=10 SEED=1)
	@$(PYTHON) -m sandbox up
	@IF_CHANGED=yes tools/deploy
	@$(PYTHON) -m tests.e2e.chaos $(MINUTES) $(SEED)

.PHONY: generate
generate: setup ## Write the generated pages of docs/
	@$(PYTHON) -m tools.generate

.PHONY: lock
lock: setup ## Renew the lock files in requirements/
	@for name in runtime dev go; do \
	  uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
	    --no-emit-index-url --no-emit-find-links requirements/$$name.in -o requirements/$$name.txt; \
	done

.PHONY: clean
clean: setup ## Remove the sandboxes and what the checkout has made (the cache stays)
	@$(PYTHON) -m sandbox down
	@ETCDOPS_SANDBOX=2 $(PYTHON) -m sandbox down
	@rm -rf .build .mypy_cache .pytest_cache .ruff_cache artifacts
