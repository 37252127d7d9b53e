# pulsar-lake: `make help` lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules
# Two targets at once: `lint`, of which mypy takes one core for half a minute, beside `setup` and
# the tests. Goals that are given together, as in `make clean test`, follow each other.
ifeq ($(words $(MAKECMDGOALS)),1)
MAKEFLAGS += -j2
endif
# Python keeps the bytecode of what it imports. A test run starts hundreds of Python processes.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3.11
UV_VERSION := 0.13.8
BIN := .venv/bin

.PHONY: help
help:  ## List the targets
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | awk -F'\t' '{printf "  make %-12s %s\n", $$1, $$2}'

.PHONY: tools
tools:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 is missing: install it, or name it with PYTHON=/path/to/python3.11" >&2; exit 1; }
	@command -v java >/dev/null && command -v javac >/dev/null || { echo "A JDK (17 or newer) is missing: install one and put java and javac on the PATH" >&2; exit 1; }
	@command -v mvn >/dev/null || { echo "Maven is missing: install it and put mvn on the PATH" >&2; exit 1; }

# The virtual environment: exactly the locked versions, each checked by its hash; first uv, which
# checks those of all others.
.venv/.done: pyproject.toml requirements.lock bootstrap.lock | tools
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --only-binary :all: -r bootstrap.lock
	@$(BIN)/uv pip sync -q --python $(BIN)/python --require-hashes requirements.lock
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: setup
setup: .venv/.done  ## Make .venv, fetch the jars, compile shim and kernels, archive Spark's classes
	@$(BIN)/pulsar-lake setup

.PHONY: wheel
wheel: .venv/.done  ## Build the wheel that users install, the catalog shim in it, into dist/
	@$(BIN)/uv build -q --wheel --no-build-isolation --python $(BIN)/python -o dist .

.PHONY: lock
lock: .venv/.done  ## Pin every dependency anew (requirements.lock)
	echo uv==$(UV_VERSION) | $(BIN)/uv pip compile -q --python-version 3.11 --generate-hashes --no-annotate - -o bootstrap.lock --custom-compile-command "make lock"
	$(BIN)/uv pip compile -q --upgrade --python-version 3.11 --generate-hashes --group dev pyproject.toml -o requirements.lock --custom-compile-command "make lock"
	$(BIN)/uv pip compile -q --python-version 3.11 --generate-hashes --no-annotate --extra iceberg --extra hdfs --group build -c requirements.lock pyproject.toml -o deploy/requirements.lock --custom-compile-command "make lock"
	$(BIN)/python -m spark_ext.session.jars.lock

# The newest that generates code of protobuf 6, which runs with each version of protobuf 7.
PROTOC := grpcio-tools==1.81.1

.PHONY: proto
proto: .venv/.done  ## Generate reader/wire/pulsar_pb2.py from pulsar.proto
	$(BIN)/uv tool run --python $(BIN)/python --from $(PROTOC) --with setuptools python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. reader/wire/pulsar.proto

.PHONY: format
format: .venv/.done  ## Format the code
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

.PHONY: lint
lint: .venv/.done  ## Lint, types and import contracts
	$(BIN)/ruff format --check . && $(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# One file at a time in each process: tests/conftest.py says which tests belong together. More
# processes than cores, because tests wait for servers and timeouts; `test-servers` has a Spark in
# each. How long each test took is kept by target, in build/junit.
PROCESSES := 3
check-alone test-alone: PROCESSES := 4
PYTEST = $(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder --junitxml=build/junit/$(@:-alone=).xml
# A tenth of the examples of each Hypothesis test; `make test-nightly` tries them all.
FEW := --hypothesis-profile=check

# Sessions start without an archive of Spark's classes here: to make one takes longer than it saves.
check-alone test-alone: export PULSAR_LAKE__SPARK__CLASS_ARCHIVE := false

.PHONY: check
check: lint check-alone  ## Lint, types, import contracts and unit tests

.PHONY: check-alone
check-alone: setup  ## The tests of `check`, without lint
	$(PYTEST) $(FEW) -m "not servers and not nightly" tests/unit

.PHONY: chromium
chromium:
	@.ci/chromium

.PHONY: test
test: lint test-alone  ## `check`, simulated histories, each kind of message and one journey a door

.PHONY: test-alone
test-alone: setup chromium  ## The tests of `test`, without lint
	$(PYTEST) $(FEW) --one-spark -m "not servers and not nightly"

.PHONY: test-servers
test-servers: setup chromium  ## All other tests on real servers, which `test` leaves out
	$(PYTEST) $(FEW) -m "servers and not nightly"

# What depends on the storage, on a server of each kind. The servers are made on first use, by Go,
# npm and Maven. docs/storages.md says what was run where.
STORAGES := versity gcs azure hdfs
ON_STORAGES := tests/maintenance/test_commit.py tests/maintenance/test_commit_faults.py \
	tests/offload/test_crash.py tests/offload/test_two_offloaders.py \
	tests/maintenance/test_maintenance.py tests/maintenance/test_vacuum.py \
	tests/lake/test_moving_segments.py tests/lake/test_maintenance.py tests/scan/test_rows.py \
	tests/spark/test_catalog.py tests/spark/stream/test_streams.py \
	tests/spark/sink/test_exactly_once.py tests/spark/sink/test_journey.py

.PHONY: test-storages
test-storages: setup  ## The contract of storages, and the product on each kind (options: STORAGES="gcs hdfs")
	$(BIN)/python -m pytest -m nightly --junitxml=build/junit/storages.xml tests/storages
	for kind in $(STORAGES); do \
		$(PYTEST) $(FEW) --junitxml=build/junit/storages-$$kind.xml --storage $$kind $(ON_STORAGES); \
	done

.PHONY: test-nightly
test-nightly: setup test-storages  ## What takes hours: each storage, random tests in full, many histories, faults
	$(PYTEST) -m "random or nightly" --ignore=tests/storages
	$(BIN)/python -m tests.faults --seconds 7200

.PHONY: faults
faults: setup  ## Publish, offload and query while everything fails, for an hour (options: ARGS="--seconds 600 --seed 7")
	@$(BIN)/python -m tests.faults $(ARGS)

.PHONY: simulate
simulate: setup  ## Random histories in a simulated world (options: ARGS="--seed 7 --histories 20000")
	@$(BIN)/python -m tests.simulation $(ARGS)

# The named tests first, then the room's, all unit tests, and what `test` does.
.PHONY: mutations
mutations: setup  ## Do the tests find faults? (options: ARGS="--only id,id --stage unit --out table.md")
	@$(BIN)/python -m tests.mutations $(ARGS)

.PHONY: demo
demo: setup  ## The whole thing on a real Pulsar, in a few minutes
	@$(BIN)/python -m demo

.PHONY: bench
bench: setup  ## Speed beside its peers (options: CASE=name,name ARGS="--quick"; ARGS=--list)
	@$(BIN)/python -m benchmarks $(if $(CASE),--case $(CASE)) $(ARGS)

.PHONY: clean
clean:  ## Remove .venv and what was built or measured here
	rm -rf .venv build dist demo-out benchmarks/results .mypy_cache .ruff_cache .pytest_cache
