# Two commands matter: `make test` and `make reproduce`. Every command sets up .venv first, once.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup test test-slow test-bench attack reproduce playground site bench bench-jax reality \
	format clean

setup: $(READY)

test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto -m "not slow and not bench"

test-slow: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto -m slow

# One after the other and with all cores: these measure time.
test-bench: $(READY)
	$(BIN)/pytest -m bench

# A quarter of an hour of kills, fuzzed calls, damaged files and full disks; see docs/promises.md.
attack: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m attack

reproduce: $(READY)
	$(BIN)/skipstone reproduce

# One page on which the trained models run in a browser; written again when weights change.
playground: $(READY)
	$(BIN)/python -m skipstone.paper.playground

# The documentation with search, in build/site/site; a warning is an error.
site: $(READY)
	$(BIN)/python -m website

# With all cores, then what has bars with one thread.
ONE_THREAD := --threads 1 --folder results/one-thread --only training --only rollout \
	--only planning --only efficiency
bench: $(READY)
	$(BIN)/python -m benchmarks.bench
	$(BIN)/python -m benchmarks.bench $(ONE_THREAD)

# The same with an ODE-RNN in JAX, which nothing else here needs.
bench-jax: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[bench-jax]'
	$(BIN)/python -m benchmarks.bench
	$(BIN)/python -m benchmarks.bench $(ONE_THREAD)

# About 8 hours on one core; stop it at any time, and start it again to go on. The cube's tosses are
# not shipped (docs/real-data.md); without them the rest is done.
CUBE ?= data/cube_tosses.parquet
JOBS ?= 1
reality: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[reality]'
	$(BIN)/python -m benchmarks.reality.run --cube $(CUBE) --jobs $(JOBS)
	$(BIN)/python -m benchmarks.reality.times --cube $(CUBE)
	$(BIN)/python -m benchmarks.reality.figures --cube $(CUBE)
	$(BIN)/python -m benchmarks.reality.report

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The stamp depends on the two files that decide what is installed: nothing changed, nothing done.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[all,dev]'
	$(BIN)/python -m skipstone.models.fast
	touch $@

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis
