# make demo     see the whole loop on an example
# make test     every test
# make check    format, lint, types, layers
# make bench    how fast it is on this machine, how right, beside other tools: BENCHMARKS.md
#               (STEPS="speed answers peers times", BENCH=<folder of development sets>)
# make soak     the long simulations, at the size of a night
#
# Each makes .venv and installs what it needs there.

PYTHON ?= python3
BENCH ?= ../shared/bench
BIN := .venv/bin

.PHONY: demo test check bench soak clean
demo: .venv/khms.installed
	$(BIN)/khms demo

test: .venv/dev.installed
	$(BIN)/python -m pytest -n auto $(TESTS)

check: .venv/dev.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict khms bench
	$(BIN)/python -m pytest -q tests/test_layers.py

bench: .venv/khms.installed
	$(BIN)/python -m bench $(STEPS) --sets $(BENCH)

soak: .venv/dev.installed
	KHMS_SOAK=60 $(BIN)/python -m pytest -q -m slow tests/end_to_end/test_twenty_clones.py tests/pipeline/test_sync.py
	KHMS_SOAK=10 $(BIN)/python -m pytest -q -m slow tests/index/test_index_stateful.py tests/index/test_many_processes.py

clean:
	rm -rf .venv dist build _site .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv .venv

.venv/khms.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/dev.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ .venv/khms.installed
