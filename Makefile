# Needs Python 3.10 or newer, make and pip. Everything is installed into .venv, once for each pyproject.toml.

PYTHON ?= python3
# First, and pinned: nothing that is installed later may bring another version.
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Code that is checked; whichever of the folders are there.
SOURCES := $(wildcard graphmend_lint rules benchmarks scripts tests)

.DEFAULT_GOAL := help
.PHONY: help demo test lint typecheck pytest format facts bench-speed bench-table2 clean

help: ## Show what there is to make
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,dev]'
	@touch $@

demo: $(READY) ## T5 from transformers: findings, the fix as a diff, and the proof
	$(BIN)/python scripts/demo.py

test: lint typecheck pytest ## All checks: ruff, mypy, pytest

lint: $(READY)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

typecheck: $(READY)
	$(BIN)/mypy

# After the checks, so that the closing line of a run is pytest's.
pytest: $(READY) lint typecheck
	$(BIN)/python -m pytest

format: $(READY) ## Format and sort imports
	$(BIN)/ruff check --select I --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

facts: $(READY) ## Regenerate what is known about torch's functions
	$(BIN)/python scripts/generate_torch_facts.py

bench-speed: $(READY) ## Time and memory on all of transformers, beside ruff and Fixit
	$(BIN)/python -m benchmarks.speed

bench-table2: $(READY) ## Breaks before and after on the models of the paper's Table 2
	$(BIN)/python -m benchmarks.table2

clean: ## Remove the environment, caches and build output
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .graphmend_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
