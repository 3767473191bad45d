# make setup | run | test | test-all | reproduce | bench | lint | site | site-serve | lock   (Python 3.11 to 3.14 with venv, and make)

# The first that is there; make setup PYTHON=python3.12 takes another.
PYTHON ?= $(firstword $(foreach python,python3 python3.14 python3.13 python3.12 python3.11,$(shell \
  $(python) -c 'import sys; sys.version_info >= (3, 11) and print("$(python)")' 2>/dev/null)))
# Modules are compiled when they are first imported, not all of them here.
PIP = $(BIN)/python -m pip install --quiet --no-compile
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
WORKERS ?= 3
STUDY ?= fig4-left
BENCH ?= fhp

.PHONY: setup browser run gpu test test-all test-lowest screens reproduce bench lint site site-serve lock clean

setup: .venv/installed

# The package alone, which is enough to train, play and measure.
.venv/package: requirements.lock requirements-torch.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "make setup needs Python 3.11 or newer, and there is none."; exit 1; }
	@$(PYTHON) -c "import ensurepip, venv" 2>/dev/null \
	  || { echo "make setup needs Python's venv, which $(PYTHON) lacks: on Debian, apt-get install python3-venv."; exit 1; }
	$(PYTHON) -m venv .venv
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) -r requirements-torch.lock
	$(PIP) --no-deps --no-build-isolation -e .
	touch $@

# And what tests, lint, studies and the site need, with all kernels and the modules that commands import compiled.
.venv/installed: .venv/package requirements-dev.lock
	$(PIP) --require-hashes -r requirements-dev.lock
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m deepcfr.cli.warm_up
	touch $@

# Train flop hold'em in 6 minutes on two cores (setting "strength" of docs/fhp.md) and print the exact NashConv.
run: .venv/package
	$(BIN)/deepcfr train fhp --config fhp-quick --out runs/fhp-quick-$$(date +%Y%m%d-%H%M%S)

# On a machine with a CUDA device: flop hold'em in the paper's setting (docs/fhp.md).
gpu: setup
	$(BIN)/deepcfr train fhp --config fhp-gpu-paper --out runs/fhp-gpu-paper

# The tests of the pages drive Debian's chromium, which takes root to install; without it they are skipped.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq \
	  && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
	  || echo "chromium is not there and could not be installed: the tests in a browser are skipped."

# Three workers keep two cores busy, because tests also wait for processes of their own; make test WORKERS=8 on a larger
# machine. A worker takes up to 2 GB, and one that has nothing left takes tests of another.
test: setup browser
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# The long tests too, and random examples of hypothesis: before a release.
test-all: setup browser
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "" --hypothesis-profile=random

# The tests with the lowest versions that pyproject.toml allows of what the package imports; uv must be there.
test-lowest: browser
	uv venv --quiet --clear build/lowest
	uv pip install --quiet --python build/lowest --resolution lowest-direct --all-extras -e .
	uv pip install --quiet --python build/lowest --group test
	build/lowest/bin/python -m pytest -n $(WORKERS) --dist worksteal

# The pictures of README.md and docs/web.md, 1280 pixels wide; chromium must be there.
screens: setup browser
	DEEPCFR_SCREENS=docs/screens $(BIN)/python -m pytest tests/web/test_browser.py tests/test_documentation_site.py -k picture

# An experiment of a paper, make reproduce STUDY=fig2, and then its pages; and speeds, make bench BENCH=fhp (docs/cli.md).
reproduce: setup
	$(BIN)/python -m experiments reproduce $(STUDY)
	$(BIN)/python -m experiments report

bench: setup
	$(BIN)/python -m experiments bench $(BENCH)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation site; a broken link or a name that is not there is an error.
site: setup
	$(BIN)/zensical build --strict --clean
	@echo "Open build/site/index.html; search in it needs a server: make site-serve"

# The site at http://localhost:8000/, where its search works; browsers let no page of a folder read the index.
site-serve: site
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000

# New lock files, with uv: the versions stay as they are where they may; make lock UPGRADE=--upgrade takes the newest.
lock:
	uv pip compile --quiet $(UPGRADE) pyproject.toml --constraint requirements-torch.lock --output-file requirements.lock
	uv pip compile --quiet $(UPGRADE) pyproject.toml --all-extras --group dev --constraint requirements-torch.lock --constraint requirements.lock \
	  --output-file requirements-dev.lock

clean:
	rm -rf .venv
