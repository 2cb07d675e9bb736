# Everything starts from a bare Python >= 3.11; `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ROWS ?= 400000
FORMAT ?= csv
DATABASE ?= sqlite
STORAGE ?= folder
PYTEST ?=
TESTERS ?= 3
KIND ?= exports.kinds.orders.OrdersKind
ROUNDS ?= 3
MUTANTS ?=
MINUTES ?= 10
SEED ?=
MODE ?=

PIP_COMPILE = CUSTOM_COMPILE_COMMAND="make requirements" $(BIN)/pip-compile --quiet --generate-hashes \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links --strip-extras --allow-unsafe
SYSTEM_PACKAGES = mariadb-server chromium chromium-driver libreoffice-calc

.DEFAULT_GOAL := help
.PHONY: help demo test check bench mutants soak format system-packages requirements clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/demo.stamp  ## start everything on this machine and export ROWS orders as FORMAT (csv, xlsx) from DATABASE (sqlite, postgres) to STORAGE (folder, s3)
	$(BIN)/python manage.py demo --rows $(ROWS) --format $(FORMAT) --database $(DATABASE) --storage $(STORAGE)

test: check  ## the checks and all tests; PYTEST="-k cancel" passes options on
	$(BIN)/python -m pytest -n $(TESTERS) --dist worksteal $(PYTEST)

check: $(VENV)/dev.stamp  ## linters, types and layers, in seconds
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(VENV)/bench.stamp  ## the service and its peers in turn on the same orders (KIND= for a kind of your own, ROUNDS=, BENCH="--only xlsx")
	$(BIN)/python -W ignore -m tests.bench --kind $(KIND) --rounds $(ROUNDS) $(BENCH)
	$(BIN)/python -W ignore -m tests.bench.answers

mutants: $(VENV)/dev.stamp  ## put each seeded bug of tests/mutants into a copy and see that a test catches it (MUTANTS= for some)
	$(BIN)/python -m tests.mutants $(MUTANTS)

soak: $(VENV)/dev.stamp  ## random loads and faults on real processes for MINUTES; SEED= replays a run, MODE= (kills, zombies, calls, workers, submits, cancels, hints, valkey) reaches one figure
	$(BIN)/python -W ignore -m tests.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(MODE),--mode $(MODE))

format: $(VENV)/dev.stamp  ## write the code as the linter wants it
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

system-packages:  ## what some tests need and pip does not have (Debian, Ubuntu)
	./.ci/system-packages $(SYSTEM_PACKAGES)

requirements: $(VENV)/dev.stamp  ## pin requirements/*.in anew; PIP_COMPILE_ARGS=--upgrade takes newer versions
	cd requirements && for name in base prod otel demo dev bench; do \
		$(subst $(BIN),../$(BIN),$(PIP_COMPILE)) $(PIP_COMPILE_ARGS) --output-file $$name.txt $$name.in || exit 1; done

clean:  ## remove what these targets made, apart from demo data
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis htmlcov .coverage

# The stamp is newer than the pins only after an install that went to its end, so a second run is fast.
$(VENV)/%.stamp: requirements/%.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/$*.txt
	@touch $@
