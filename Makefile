# Two commands matter: `make demo` and `make test`. Both set up everything they need in .venv/.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# One BLAS thread: the matrices of the tests are small, and test workers share the cores.
QUIET_BLAS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# Compiled tests are kept: without, every worker compiles all of them at every run.
COMPILED := PYTHONDONTWRITEBYTECODE=

.PHONY: test demo lint docs reference stories wheel-check pictures papers papers-quick bench bench-accuracy \
  bench-calibration bench-peers bench-suite \
  bench-load bench-kills fuzz lowest steady setup lock clean
.DEFAULT_GOAL := test

setup: $(VENV)/.ready

$(VENV)/.ready: requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "privgp needs Python 3.11, 3.12 or 3.13: set PYTHON to its path."; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

test: setup
	$(QUIET_BLAS) $(COMPILED) $(BIN)/pytest -n 2 --dist worksteal

# The suite three times, each with another order of sets and with other noise.
steady: setup
	@set -e; for shift in 1 2 3; do \
	  PYTHONHASHSEED=$$shift PRIVGP_TEST_SHIFT=$$shift $(QUIET_BLAS) $(BIN)/pytest -n 2 --dist worksteal; \
	done

# The tests of the code, but for statistics, with the lowest versions that pyproject.toml allows. Pages are
# built with the pinned versions only.
.venv-lowest/.ready: lowest.lock pyproject.toml
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check --require-hashes -r lowest.lock
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

lowest: .venv-lowest/.ready
	$(QUIET_BLAS) .venv-lowest/bin/pytest -n 2 --dist worksteal -m "not statistical" \
	  --ignore tests/test_docs.py --ignore tests/test_site.py --ignore tests/benchmarks

demo: setup
	$(QUIET_BLAS) $(BIN)/privgp demo

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Every picture of the docs: an hour; PAPERS=papers-reports takes figures of the papers from there.
pictures: setup
	$(QUIET_BLAS) $(BIN)/python -m benchmarks.gallery $(if $(PAPERS),--papers $(PAPERS))

# The site, into site/: any broken link or unreadable page is an error.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# The reference, from docstrings, options and rules.
reference: setup
	$(BIN)/python -m website.reference

# The notebooks of the documentation, run, and their pictures made anew.
stories: setup
	$(QUIET_BLAS) $(BIN)/python website/stories.py

# The wheel in fresh environments, as its users install it, with the demo run from elsewhere.
PYTHONS ?= python3.11 python3.12 python3.13

wheel-check: setup
	rm -rf build/wheel
	$(BIN)/python -m hatchling build -t wheel -d build/wheel
	@set -e; for python in $(PYTHONS); do \
	  if ! $$python --version >/dev/null 2>&1; then echo "$$python is not here: skipped."; continue; fi; \
	  fresh=$$PWD/build/wheel/$$(basename $$python); \
	  $$python -m venv --clear $$fresh; \
	  $$fresh/bin/pip install --quiet --disable-pip-version-check build/wheel/*.whl; \
	  (cd $$fresh && $(QUIET_BLAS) bin/privgp demo >demo.txt) || { cat $$fresh/demo.txt; exit 1; }; \
	  echo "$$($$fresh/bin/python --version): the wheel installs and its demo runs."; \
	done

# The papers' tables and figures, as pages in papers-reports: half an hour, quick ones in minutes.
DATA ?= ../shared/data

papers: setup
	$(QUIET_BLAS) $(BIN)/python -m papers all --data $(DATA) --out papers-reports

papers-quick: setup
	$(QUIET_BLAS) $(BIN)/python -m papers all --quick --data $(DATA) --out papers-reports-quick

bench: setup
	$(BIN)/python -m benchmarks.speed

bench-accuracy: setup
	$(BIN)/python -m benchmarks.accuracy

# Errors and error bars on known functions and on real data, into the folder calibration.
bench-calibration: setup
	$(QUIET_BLAS) $(BIN)/python -m benchmarks.calibration --data $(DATA)

# Private curves and maps beside other methods, one table: an hour on one core. Peers are in .venv-peers.
bench-suite: setup .venv-peers/.ready
	$(QUIET_BLAS) $(BIN)/python -m benchmarks.suite --data $(DATA)

# A server under load: speed against the bare model, many clients at once, memory.
bench-load: setup
	$(QUIET_BLAS) $(BIN)/python -m benchmarks.load

# A server that is killed 50 times while it is asked.
bench-kills: setup
	$(QUIET_BLAS) $(BIN)/python -m benchmarks.kills
	$(QUIET_BLAS) $(BIN)/python -m benchmarks.kills --postgresql

# 10,000 broken uploads, as many requests by the schema of the server, 100 races of eight keys on either
# database, and 10,000 forged files and sequences of questions.
fuzz: setup
	PRIVGP_FUZZ=10000 $(QUIET_BLAS) $(BIN)/pytest tests/server/test_fuzz.py tests/server/test_databases.py \
	  tests/adversary/test_forgeries.py tests/adversary/test_sequences.py

# Peers live in an environment of their own. One that does not install is reported, not hidden:
# dp4gp asks for a package that no longer exists, so it comes without its dependencies.
.venv-peers/.ready: benchmarks/peers.txt
	$(PYTHON) -m venv --clear .venv-peers
	-xargs -n 1 .venv-peers/bin/pip install --quiet --disable-pip-version-check < benchmarks/peers.txt
	-.venv-peers/bin/pip install --quiet --disable-pip-version-check --no-deps dp4gp==1.1
	@touch $@

bench-peers: setup .venv-peers/.ready
	$(QUIET_BLAS) $(BIN)/python -m benchmarks.peers

# Needs uv; writes hashes and no addresses: of everything, of a server, and of everything with the
# lowest direct dependencies.
COMPILE := uv pip compile --no-emit-index-url --no-emit-find-links \
  --no-header --no-annotate --python-version 3.11 --quiet
EXTRAS := --extra server --extra dask --extra geo --extra database

lock:
	$(COMPILE) --generate-hashes pyproject.toml $(EXTRAS) --extra dev --extra docs \
	  -o requirements.lock > /dev/null
	echo hatchling | $(COMPILE) --generate-hashes pyproject.toml - --extra server \
	  -c requirements.lock -o deploy/requirements.lock > /dev/null
	mkdir -p build
	$(COMPILE) --resolution lowest-direct --no-deps pyproject.toml $(EXTRAS) \
	  -o build/lowest.txt > /dev/null
	$(COMPILE) --generate-hashes pyproject.toml $(EXTRAS) --extra dev --extra docs \
	  -c build/lowest.txt -o lowest.lock > /dev/null

clean:
	rm -rf $(VENV) .venv-lowest .venv-peers site .mypy_cache .ruff_cache .hypothesis
