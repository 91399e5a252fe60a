# make demo   the main job, end to end, on built-in data
# make test   every test
# make lint   format, lint, types, import order
# make oldest the tests that need no extras, with the oldest libraries that are allowed
# make audit  known weaknesses of the libraries that are installed (asks the network)
# make docs   the documentation site, into site/
# make bench  list the benchmarks; make bench NAME=overhead runs one

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OLDEST := tests/unit/store tests/unit/sampling tests/unit/laws tests/unit/test_campaign.py tests/contracts

.PHONY: demo test lint oldest audit docs bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	$(BIN)/apiece demo --to demo

test: $(VENV)/.installed-dev
	@sh tests/browser/install.sh
	$(BIN)/python -m pytest -n 2 $(ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

oldest:
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet . --requirement tests/oldest.txt pytest hypothesis duckdb
	PYTHONPATH=src $(VENV)-oldest/bin/python -m pytest -W default -m 'not slow' -k 'not Amortized' $(OLDEST)

audit: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/pip-audit --skip-editable

docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "open site/index.html"

bench: $(VENV)/.installed-dev
ifdef NAME
	$(BIN)/python benchmarks/$(NAME).py $(ARGS)
else
	@echo "benchmarks (make bench NAME=... runs one):"
	@for file in benchmarks/[!_]*.py; do \
	  printf '  %-12s %s\n' "$$(basename $$file .py)" "$$(sed -n '1s/^r\{0,1\}"""//p' $$file)"; done
endif

clean:
	rm -rf $(VENV) $(VENV)-oldest demo site

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "apiece needs Python 3.11 or newer, but $(PYTHON) is " + sys.version.split()[0] + ". Run: make PYTHON=python3.12 ...")'
	@echo "making a virtual environment in $(VENV)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.installed: pyproject.toml | $(VENV)/.made
	@echo "installing apiece into $(VENV)"
	$(BIN)/python -m pip install --quiet --editable '.[plots]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "installing the tools for tests and checks into $(VENV)"
	$(BIN)/python -m pip install --quiet --group dev
	@touch $@
