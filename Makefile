# `make demo` and `make test` set up .venv by themselves; only Python 3.10 or newer is needed.
PYTHON ?= python3
VENV   ?= .venv
# Pinned, because a loose range may pull some gigabytes. TORCH="torch==2.13.0 --index-url ..." takes another build.
TORCH  ?= torch==2.13.0
EXAMPLE ?= examples/library_desk.json

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: demo test lint format clean help

help:
	@echo "make demo    detect the redundant steps of $(EXAMPLE) with the shipped model"
	@echo "make test    ruff, mypy and pytest"
	@echo "make format  let ruff format the code"
	@echo "make clean   remove $(VENV), caches and build outputs"

demo: $(VENV)/.stamp-run
	$(BIN)/redclf detect $(EXAMPLE)

test: lint
	$(BIN)/python -m pytest

lint: $(VENV)/.stamp-dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

format: $(VENV)/.stamp-dev
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "redclf needs Python 3.10 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.stamp-run: pyproject.toml | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(VENV)/.stamp-dev: pyproject.toml | $(BIN)/python
	$(PIP) $(TORCH)
	$(PIP) -e '.[train,dev]'
	@touch $@ $(VENV)/.stamp-run

clean:
	rm -rf $(VENV) .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
