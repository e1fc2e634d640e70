# What a person wants to do, by name. `make help` lists it.
# Any Python from 3.11 on will do: make test PYTHON=python3.13

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help run test lint types tests format bench clean

help: ## list what make can do
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/run.stamp ## serve badges on this machine; HOST, PORT and DATA say where
	@exec $(BIN)/python -m local

test: lint types tests ## check style and types, run every test

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

tests: $(VENV)/dev.stamp
	$(BIN)/pytest

format: $(VENV)/dev.stamp ## put the code into the one style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/dev.stamp ## measure, and print what was measured as tables
	$(BIN)/python -m bench

clean: ## remove what make made, never your data
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/made.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "vu-mi needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) --version 2>&1); try make PYTHON=python3.13" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/run.stamp: requirements.txt requirements-local.txt constraints.txt | $(VENV)/made.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-local.txt
	@touch $@

# After run.stamp, so that two pips never work on one environment under make -j.
$(VENV)/dev.stamp: requirements-dev.txt $(VENV)/run.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-dev.txt
	@touch $@
