# make setup | run | test | lint   (Python 3.11 or 3.12, make and gcc are all that is needed)

PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2

.PHONY: setup browser run gpu test screens lint clean

setup: .venv/installed

.venv/installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

# Train flop hold'em in 12 to 14 minutes on two cores (setting "strength" of docs/fhp.md) and print the exact NashConv.
run: setup
	$(BIN)/deepcfr train fhp --config configs/fhp-quick.toml --out runs/fhp-quick-$$(date +%Y%m%d-%H%M%S)

# On a machine with a CUDA device: flop hold'em in the three settings of docs/fhp.md.
gpu: setup
	for setting in faithful strength paper; do \
	  $(BIN)/deepcfr train fhp --config configs/fhp-gpu-$$setting.toml --out runs/fhp-gpu-$$setting || exit 1; \
	done

# The tests of the pages drive Debian's chromium, which takes root to install; without it they are skipped.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq \
	  && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } \
	  || echo "chromium is not there and could not be installed: the tests in a browser are skipped."

# A file's tests stay in one process, which takes up to a few GB; make test WORKERS=8 on a larger machine.
test: setup browser
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

# The pictures of the pages that the README shows, 1280 pixels wide; chromium must be there.
screens: setup browser
	DEEPCFR_SCREENS=docs/screens $(BIN)/python -m pytest tests/web/test_browser.py -k pictures

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf .venv
