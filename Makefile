# make reproduce   the paper's figures and the table of its claims, into results/
# make test        lint, types and the test suite
# make fuzz        attacks on settings, files, folders, arguments and ranks, counted in docs/results/fuzz.md (QUICK=1 for a tenth)
# make fuzz-properties   the property tests with new draws, FUZZ times as many (30 by default)
# make study       the study of PerronD3GD, into docs/results/study (QUICK=1 for minutes instead of half an hour on two cores)
# make fashion     methods that train a convolutional network on Fashion-MNIST, into docs/results/fashion: an hour on two cores
# make logistic    methods on logistic regression, into docs/results/logistic: DATA=a9a takes a file of your own; minutes
# make pages       the pages that follow from code and results: methods, settings, commands, claims
# make tables      the tables within pages that take long to compute: half an hour or more
# make docs        the documentation as a site, into build/site; warnings and broken links are errors
# make bench       targets of speed and memory, measured, into docs/results/benchmarks.md (QUICK=1 for fewer repeats,
#                  TRAINING=1 for training steps alone)
# make soak        eight sites on a bad network, killed and restarted at random, for MINUTES (10 by default)
# make audit       the pinned versions against known vulnerabilities; needs a network
# All build .venv from constraints.txt first and work in either order. PYTHON chooses an interpreter for it (3.11 to 3.14),
# EXTRAS what is installed for tests: without torch, its tests are skipped.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
AUDIT  := .venv-audit
EXTRAS ?= dev,mpi,tensorboard,torch
# The two variables pin what builds the package as well: the first until pip 25.2, the second since.
PIP    := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
          $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
OUT    ?= results
SEEDS  ?= 10
FUZZ   ?= 30
MINUTES ?= 10

.PHONY: reproduce docs pages tables study fashion logistic bench soak fuzz fuzz-properties test lint types suite audit clean

reproduce: $(VENV)/.core
	$(BIN)/d3gd reproduce all --seeds $(SEEDS) --out $(OUT)

study: $(VENV)/.dev
	$(BIN)/python -m studies $(if $(QUICK),--quick --out study-quick,--out docs/results/study)

fashion: $(VENV)/.dev
	$(BIN)/python -m studies.fashion --out docs/results/fashion

logistic: $(VENV)/.dev
	$(BIN)/python -m studies.logistic $(if $(DATA),--data $(DATA) --out $(OUT)/logistic,--out docs/results/logistic)

pages: $(VENV)/.dev
	$(BIN)/python -m docs.scripts.pages

tables: $(VENV)/.dev
	for table in $(notdir $(basename $(wildcard docs/scripts/*_table.py))); do \
	    $(BIN)/python -m docs.scripts.$$table || exit 1; done

docs: $(VENV)/.docs pages
	$(BIN)/sphinx-build -q -W --keep-going -E -c docs . build/site
	$(BIN)/python docs/scripts/links.py build/site

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/bench.py $(if $(QUICK),--quick) $(if $(TRAINING),--training)

soak: $(VENV)/.dev
	$(BIN)/python -m tests.soak --minutes $(MINUTES)

test: lint types suite

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

suite: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadgroup

fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz $(if $(QUICK),--cases 1000,--cases 10000 --out docs/results/fuzz.md)

fuzz-properties: $(VENV)/.dev
	D3GD_FUZZ=$(FUZZ) $(BIN)/python -m pytest -n 2 -m hypothesis

$(VENV)/.core: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e '.[$(EXTRAS)]'
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(PIP) -e '.[docs]'
	touch $@

# Without an answer pip-audit prints nothing to its standard output; with one, what it found.
audit: $(AUDIT)/.done
	@if found=$$($(AUDIT)/bin/pip-audit --strict --no-deps --disable-pip --progress-spinner off -r constraints.txt \
	    2>$(AUDIT)/log); then echo "audit: no known vulnerability in constraints.txt"; \
	elif test -n "$$found"; then echo "$$found"; exit 1; \
	else echo "audit: not every pin could be checked; it needs a network (details: $(AUDIT)/log)"; exit 1; fi

$(AUDIT)/.done:
	@$(PYTHON) -m venv $(AUDIT)
	@$(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1 2>$(AUDIT)/log \
	    || { echo "audit: pip-audit could not be installed; it needs a network (details: $(AUDIT)/log)"; exit 1; }
	@touch $@

clean:
	rm -rf $(VENV) $(AUDIT) .venv-rivals build $(OUT) .pytest_cache .mypy_cache .ruff_cache .hypothesis
