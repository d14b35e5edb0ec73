# make reproduce   the paper's figures and the table of its claims, into results/
# make test        lint, types and the test suite
# make fuzz      the property tests with new draws, FUZZ times as many (30 by default)
# make study       the study of PerronD3GD, into docs/study (QUICK=1 for minutes instead of half an hour)
# make bench       targets of speed and memory, measured, into docs/benchmarks.md (QUICK=1 for fewer repeats)
# All build .venv from constraints.txt first and work in either order.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
OUT    ?= results
SEEDS  ?= 10
FUZZ   ?= 30

.PHONY: reproduce study bench fuzz test lint types suite clean

reproduce: $(VENV)/.core
	$(BIN)/d3gd reproduce all --seeds $(SEEDS) --out $(OUT)

study: $(VENV)/.dev
	$(BIN)/python -m studies $(if $(QUICK),--quick --out study-quick,--out docs/study)

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/bench.py $(if $(QUICK),--quick)

test: lint types suite

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

suite: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup

fuzz: $(VENV)/.dev
	D3GD_FUZZ=$(FUZZ) $(BIN)/python -m pytest -n 2 -m hypothesis

$(VENV)/.core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e '.[dev,mpi,torch]'
	touch $@

clean:
	rm -rf $(VENV) .venv-rivals $(OUT) .pytest_cache .mypy_cache .ruff_cache .hypothesis
