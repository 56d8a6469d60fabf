# Every target starts from nothing but python3 and make: it creates a virtual
# environment and installs what it needs, once.
#
#   make demo     train a classifier of handwritten digits with dualad
#   make test     lint, types and tests
#   make deep     the tests with many more random programs (long)
#   make bench    time dualad and its peers side by side, and say what holds

PYTHON ?= python3
VENV := .venv
BENCH_VENV := .venv-bench
BIN := $(VENV)/bin
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
CONFIG := setup.cfg pyproject.toml
SOURCES := dualad tests bench

.PHONY: help demo test lint types pytest deep bench format clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/has-demo
	$(BIN)/python -m dualad demo

test: lint types pytest

lint: $(VENV)/has-test
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

types: $(VENV)/has-test
	$(BIN)/mypy

pytest: $(VENV)/has-test
	$(BIN)/python -m pytest

deep: $(VENV)/has-test
	DUALAD_PROFILE=deep $(BIN)/python -m pytest

# Some machines set these for the sake of old OpenBLAS builds; they slow new ones down.
bench: $(BENCH_VENV)/has-bench
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BENCH_VENV)/bin/python bench/all.py

format: $(VENV)/has-test
	$(BIN)/ruff format $(SOURCES)

clean:
	rm -rf $(VENV) $(BENCH_VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

# --- virtual environments ---------------------------------------------------------

# One environment serves demo and test: installing the second extra keeps the first.
$(VENV)/has-%: $(CONFIG) | $(VENV)/bin/python
	@echo "Installing dualad[$*] into $(VENV) ..."
	$(BIN)/python $(PIP_INSTALL) --editable '.[$*]'
	@touch $@

# PyTorch is large: the benchmarks have an environment of their own.
$(BENCH_VENV)/has-bench: $(CONFIG) | $(BENCH_VENV)/bin/python
	@echo "Installing dualad[bench] into $(BENCH_VENV) ..."
	$(BENCH_VENV)/bin/python $(PIP_INSTALL) --editable '.[bench]'
	@touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(BENCH_VENV)/bin/python:
	$(PYTHON) -m venv $(BENCH_VENV)
