# Every target sets up its own .venv from nothing: Python 3.11 or newer, git and make are all it takes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DEV    := $(VENV)/.ready-dev
PEER   ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-gpu lint bench bench-peers soak mutants small-errors coverage clean

help:
	@echo "make demo         train a 2048 player for a minute, measure it, draw its learning curve"
	@echo "make test         all tests, types and style"
	@echo "make bench        how fast this machine plays, steps and learns"
	@echo "make bench-peers PEER=path/to/2048   side by side with TDL2048+"
	@echo "make test-gpu     the GPU tests on a real CUDA device"
	@echo "make soak         the long tests: kills, floods of broken files, flat memory"
	@echo "make coverage     which lines and branches the tests reach"
	@echo "make mutants      break the rules on purpose, one line at a time: the tests must notice"
	@echo "make small-errors  errors of the kind a refactoring makes, one at a time: the tests must notice"
	@echo "make clean        remove .venv"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("tilesage needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": try make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(READY): $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[gym,web]"
	@touch $@

$(DEV): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@sh scripts/install-browser.sh $(BIN)
	@touch $@

demo: $(READY)
	@$(BIN)/tilesage demo

# The tests of a file share servers and clusters, so they stay together. A test that takes its process down ends the
# run: pytest-xdist would start another one and may wait for it forever.
WORKERS := -n 2 --dist loadfile --max-worker-restart 0

test: $(DEV) lint
	$(BIN)/python -m pytest $(WORKERS)

test-gpu: $(DEV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[gpu]"
	$(BIN)/python -m pytest -m gpu tests

lint: $(DEV)
	$(BIN)/ruff check src tests benchmarks scripts
	$(BIN)/ruff format --check src tests benchmarks scripts
	$(BIN)/mypy src
	$(BIN)/lint-imports --no-cache

bench: $(DEV)
	$(BIN)/python benchmarks/speed.py

bench-peers: $(DEV)
	@test -n "$(PEER)" || { echo "make bench-peers PEER=path/to/2048 (build it from the sources of TDL2048+)"; exit 2; }
	$(BIN)/python benchmarks/peers.py $(PEER)

# The long tests, one after another, some hours: their last results are in docs/reliability.md.
soak: $(DEV)
	$(BIN)/python scripts/soak/flood.py --inputs 100000
	$(BIN)/python scripts/soak/kills.py --kills 50
	$(BIN)/python scripts/soak/flat_memory.py train --minutes 60
	$(BIN)/python scripts/soak/flat_memory.py serve --minutes 60
	$(BIN)/python scripts/soak/flat_memory.py watch --games 20000
	$(BIN)/python scripts/soak/page_moves.py --moves 10000

# Lines and branches of the Python that is not compiled. One test forbids files to grow, which those of the measurement must.
coverage: NO_ROOM := tests/learning/test_crashes.py::test_files_that_may_not_grow_are_told_in_one_line
coverage: $(DEV)
	$(BIN)/python -m coverage run -m pytest -q $(WORKERS) --deselect $(NO_ROOM)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

mutants: $(DEV)
	$(BIN)/python scripts/mutants.py

small-errors: $(DEV)
	$(BIN)/python scripts/small_errors.py

clean:
	rm -rf $(VENV)
