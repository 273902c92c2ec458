# Two commands matter: `make test` and `make reproduce`. Both set up .venv first, once.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: test test-slow reproduce format clean

test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto -m "not slow"

test-slow: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto -m slow

reproduce: $(READY)
	$(BIN)/skipstone reproduce

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The stamp depends on the two files that decide what is installed: nothing changed, nothing done.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[all,dev]'
	touch $@

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis
