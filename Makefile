# What one can do here. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

NODES ?= 3
SCENARIO ?=
INSTALL ?= default
MEASURE ?=
export CLUSTER ?= sandbox

# Kept outside the checkout, so that a fresh clone starts warm.
CACHE := $(or $(ETCDOPS_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/etcdops)
VENV := $(CACHE)/venv-$(shell (python3 --version; cat requirements/dev.txt requirements/collections.txt) 2>/dev/null | sha256sum | cut -c1-12)
PYTHON := $(VENV)/bin/python

export ETCDOPS_CACHE := $(CACHE)
export PATH := $(VENV)/bin:$(PATH)
# Our own collection (the checkout itself) and kubernetes.core.
export PYTHONPATH := $(CURDIR):$(CURDIR)/.build/collections
# ansible-lint and Molecule link the collection that they work on into Ansible's home: one for each checkout.
export ANSIBLE_HOME := $(CURDIR)/.build/ansible
export ANSIBLE_COLLECTIONS_PATH := $(CURDIR)/.build/collections:$(VENV)/collections

.PHONY: help
help: ## List what one can do
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

.PHONY: setup
setup: $(VENV)/.complete .build/collections/ansible_collections/etcdops/etcd

$(VENV)/.complete:
	@echo "installing the Python packages into $(VENV)" >&2
	@mkdir -p $(CACHE)
	@command -v python3 >/dev/null || { echo "Python 3.11 or later is needed on PATH." >&2; exit 1; }
	@flock $(CACHE)/venv.lock $(CURDIR)/tools/make-venv $(VENV)

.build/collections/ansible_collections/etcdops/etcd:
	@mkdir -p $(dir $@)
	@ln -sfn $(CURDIR) $@

.PHONY: demo
demo: setup ## Bring up the sandbox with a healthy three-member etcd (CLUSTER=current: your own cluster)
	@tools/demo $(CLUSTER)

.PHONY: test
test: setup ## Lint, unit tests, the sandbox's own tests, every Molecule scenario
	@tools/test

.PHONY: unit
unit: setup ## Unit tests (they run real etcd processes) and the simulation
	@$(PYTHON) -m sandbox prepare
	@tools/unit

.PHONY: lint
lint: setup ## ruff, mypy, yamllint, ansible-lint
	@tools/lint

.PHONY: sandbox-up
sandbox-up: setup ## Bring the sandbox up (NODES=3)
	@$(PYTHON) -m sandbox up --nodes $(NODES)

.PHONY: sandbox-down
sandbox-down: setup ## Remove the sandbox
	@$(PYTHON) -m sandbox down

.PHONY: sandbox-status
sandbox-status: setup ## Show how the sandbox is
	@$(PYTHON) -m sandbox status

.PHONY: kubeconfig
kubeconfig: setup ## Print the path of the sandbox's kubeconfig
	@$(PYTHON) -m sandbox kubeconfig

.PHONY: python
python: setup ## Print the path of the Python that has everything installed
	@echo $(PYTHON)

.PHONY: molecule
molecule: setup ## Molecule scenarios (SCENARIO=name for one); leaves the sandbox up
	@tools/collecting tools/molecule $(SCENARIO)

.PHONY: image
image: setup ## Build the operator's image; prints the archive's path
	@tools/image

.PHONY: deploy
deploy: setup ## Install the operator (INSTALL=namespaced NAMESPACE=…; CLUSTER=current IMAGE=…: your own cluster)
	@tools/deploy $(INSTALL) $(NAMESPACE)

.PHONY: undeploy
undeploy: setup ## Remove the operator (INSTALL=…; DELETE_CRDS=yes: and all clusters)
	@tools/undeploy $(INSTALL) $(NAMESPACE)

.PHONY: run
run: setup ## Run the operator on this machine, against the cluster of your KUBECONFIG (WATCH_NAMESPACE=…, OPERATOR_IMAGE=…)
	@$(PYTHON) -m tools.run

.PHONY: bench
bench: setup ## Run the benchmarks on the sandbox (MEASURE=name for one)
	@tools/deploy
	@$(PYTHON) -m benchmarks $(MEASURE)

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
