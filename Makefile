# make demo      the main job, end to end, on built-in data
# make test      every test
# make quick     the fast unit tests; ARGS="-k laws" chooses among them
# make lint      format, lint, types, import order
# make docs      the documentation site, into site/; warnings are errors
# make matrix    the fast unit tests on every supported Python that is installed (noxfile.py)
# make coverage  branch coverage of the unit tests, with the floor of pyproject.toml
# make oldest    the tests that need no extras, with the oldest libraries that are allowed
# make bench     list the benchmarks; make bench NAME=overhead runs one
# make tables    write the tables in docs/ that come from benchmarks/results/
# make audit     known vulnerabilities of the installed libraries (asks the network)
# make sbom      bill of materials of what is installed and vendored, into dist/sbom.cdx.json
# make dist      source archive and wheel, checked, into dist/
# make changelog fragments of changes/ into CHANGELOG.md

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OLDEST := tests/unit/store tests/unit/collection tests/unit/laws tests/contracts

.PHONY: demo test quick lint docs matrix coverage oldest bench tables audit sbom dist changelog clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	$(BIN)/apiece demo --to demo

test: $(VENV)/.installed-dev
	@sh tests/browser/install.sh
	$(BIN)/python -m pytest -n 2 $(ARGS)

quick: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -n 2 -m 'not slow' tests/unit $(ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	tools/check_scripts.sh

docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

matrix: $(VENV)/.made
	$(BIN)/python -m pip install --quiet nox
	$(BIN)/nox -s tests

coverage: $(VENV)/.installed-dev
	$(BIN)/python -m coverage run -m pytest -q tests/unit $(ARGS)
	$(BIN)/python -m coverage report

oldest:
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet . --requirement tests/oldest.txt pytest hypothesis duckdb
	PYTHONPATH=src $(VENV)-oldest/bin/python -m pytest -W default -m 'not slow' -k 'not Amortized' $(OLDEST)

bench: $(VENV)/.installed-dev
ifdef NAME
	$(BIN)/python benchmarks/$(NAME).py $(ARGS)
else
	@echo "benchmarks (make bench NAME=... runs one):"
	@for file in benchmarks/[!_]*.py; do \
	  printf '  %-12s %s\n' "$$(basename $$file .py)" "$$(sed -n '1s/^r\{0,1\}"""//p' $$file)"; done
endif

tables: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/tables.py

audit: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/python tools/audit.py

sbom: $(VENV)/.installed
	@mkdir -p dist
	$(BIN)/python tools/sbom.py dist/sbom.cdx.json

dist: $(VENV)/.installed-release
	rm -f dist/apiece-*
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/apiece-*

changelog: $(VENV)/.installed-release
	$(BIN)/towncrier build --version "$$($(BIN)/python -c 'import apiece; print(apiece.__version__)')"

clean:
	rm -rf $(VENV) $(VENV)-oldest build demo dist site

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

$(VENV)/.installed-release: $(VENV)/.installed
	@echo "installing the tools for releases into $(VENV)"
	$(BIN)/python -m pip install --quiet --group release
	@touch $@
