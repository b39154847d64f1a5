# Everything below needs only Python 3.11 or newer, pip and make.
PYTHON  ?= python3
WORKERS ?= 2
ARGS    ?=
# What `make demo` gives to `unpinn`; its output folder is made anew each time.
DEMO     = run heat --out demo

VENV    := .venv
BIN     := $(VENV)/bin
INSTALL  = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
INPUTS  := pyproject.toml constraints.txt src/unpinn/_version.py
# Test workers run beside each other, so each keeps to one thread.
ONE_THREAD = XLA_FLAGS=--xla_cpu_multi_thread_eigen=false OMP_NUM_THREADS=1 \
	OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
# Tests of one file stay on one worker: they share fitted models and compiled functions.
PYTEST   = $(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist loadscope

.PHONY: help install develop demo test test-slow lint format speed docs clean
.DELETE_ON_ERROR:

help: ## List these targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

install: $(VENV)/.installed ## Make .venv with a working .venv/bin/unpinn.

develop: $(VENV)/.installed-test ## Add what the tests and the checks need.

demo: $(VENV)/.installed ## Run one small inverse problem from start to pictures, into demo/.
	rm -rf demo
	$(BIN)/unpinn $(DEMO)

test: $(VENV)/.installed-test ## Run the fast tests and the doctests (ARGS="-k heat" narrows them).
	$(PYTEST) $(ARGS)

test-slow: $(VENV)/.installed-test ## Run the slow tests.
	$(PYTEST) -m slow $(ARGS)

lint: $(VENV)/.installed-test ## Check style, format and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-test ## Mend what the style and format checks can mend by themselves.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

speed: $(VENV)/.installed-speed ## Time training against other libraries, one JSON line a case.
	@$(BIN)/python -m speed $(ARGS)

docs: $(VENV)/.installed-docs ## Build the documentation into site/.
	$(BIN)/mkdocs build --strict

clean: ## Remove everything that these targets made.
	rm -rf $(VENV) demo site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("unpinn needs Python 3.11 or newer: make PYTHON=..." \
		if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(INPUTS) | $(BIN)/python
	$(INSTALL) -e .
	@touch $@

$(VENV)/.installed-test: EXTRAS = test,torch,deepxde,prune,cluster
$(VENV)/.installed-speed: EXTRAS = speed,deepxde
$(VENV)/.installed-docs: EXTRAS = docs

$(VENV)/.installed-%: $(INPUTS) | $(BIN)/python
	$(INSTALL) -e '.[$(EXTRAS)]'
	@touch $@ $(VENV)/.installed
