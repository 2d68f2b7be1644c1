# Needs Python 3.10 or newer, make and pip. Everything is installed into .venv, once for each pyproject.toml.

PYTHON ?= python3
# First, and pinned: nothing that is installed later may bring another version.
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Today's models, beside the pinned ones that the tests run on.
MODERN := .venv-modern
MODERN_READY := $(MODERN)/.ready
MODERN_TRANSFORMERS := transformers==5.24.0
# The models of the paper, with one of a package that brings others, which the tests do not run with.
BENCH := .venv-bench
BENCH_READY := $(BENCH)/.ready
# Code that is checked; whichever of the folders are there.
SOURCES := $(wildcard graphmend_lint rules benchmarks scripts tests)

.DEFAULT_GOAL := help
.PHONY: help demo test lint typecheck pytest fuzz format facts bench bench-speed bench-table2 bench-modern bench-gpu clean

help: ## Show what there is to make
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,dev]'
	@touch $@

# One after the other: Fixit asks for an older click than the hub client of today's transformers, and runs with theirs
# (pip says so). OneFormer needs scipy.
$(MODERN_READY): pyproject.toml
	$(PYTHON) -m venv $(MODERN)
	$(MODERN)/bin/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(MODERN)/bin/python -m pip install --quiet --disable-pip-version-check --editable .
	$(MODERN)/bin/python -m pip install --quiet --disable-pip-version-check '$(MODERN_TRANSFORMERS)' 'scipy>=1.15'
	@touch $@

$(BENCH_READY): pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test,bench]'
	@touch $@

demo: $(READY) ## T5 from transformers: findings, the fix as a diff, and the proof
	$(BIN)/python scripts/demo.py

test: lint typecheck pytest ## All checks: ruff, mypy, pytest

lint: $(READY)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

typecheck: $(READY)
	$(BIN)/mypy

# After the checks, so that the closing line of a run is pytest's. An idle worker takes the last tests of the other, so
# that most tests of a module, which may share what is costly, stay together.
pytest: $(READY) lint typecheck
	$(BIN)/python -m pytest --numprocesses=2 --dist=worksteal

fuzz: $(READY) ## Ten thousand generated programs with branches, fixed and run: FUZZ=--examples=100 for fewer
	$(BIN)/python -m tests.fuzz $(FUZZ)

format: $(READY) ## Format and sort imports
	$(BIN)/ruff check --select I --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

facts: $(READY) ## Regenerate what is known about torch's functions
	$(BIN)/python scripts/generate_torch_facts.py

bench-speed: $(READY) ## Time and memory on all of transformers, beside ruff and Fixit
	$(BIN)/python -m benchmarks.speed

bench: bench-table2 ## The same as bench-table2

bench-table2: $(BENCH_READY) ## The paper's Table 2: ROWS=t5,phi for some; writes README.md and docs/benchmarks.md
	$(BENCH)/bin/python -m benchmarks.table2 --write $(if $(ROWS),--rows $(ROWS))

bench-modern: $(MODERN_READY) ## Models of transformers 5.24: ROWS=bart16 for some; writes docs/benchmarks.md
	$(MODERN)/bin/python -m benchmarks.modern --write $(if $(ROWS),--rows $(ROWS))

bench-gpu: $(READY) ## Original and fixed on a GPU, in ten minutes: GPU="--device cpu --small" proves the script
	$(BIN)/python -m benchmarks.gpu $(GPU)

clean: ## Remove the environments, caches and build output
	rm -rf $(VENV) $(MODERN) $(BENCH) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .graphmend_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
