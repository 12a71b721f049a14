PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python -m
export PYTHON
# Hundreds of programs start in a run of the tests; none should compile its modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test programs verify lint style types format lock audit-dependencies dist release-check docs bench bench-rivals clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Build .venv from the lock file; every target below does this first
	@tools/setup.sh
	@tools/npm.sh

demo: setup ## Run a collector and 2,000 devices on this machine, live, until Ctrl-C
	@$(VENV)/bin/ldpstream demo $(ARGS)

test: setup ## Run every check: lint, types, tests and doctests
	@$(MAKE) --no-print-directory --jobs=2 lint audit-dependencies programs
	@# Two workers for each core: many tests wait for programs that they have started.
	$(RUN) pytest -n $$(($$(nproc) * 2)) --dist worksteal $(ARGS)

programs: ## Fetch the programs that the tests run and PyPI does not carry
	@tools/system.sh

verify: setup programs ## Run the slow checks: wheels in fresh environments, Spark, an audit, a soak, the documentation
	$(RUN) pytest -o "norecursedirs=.* node_modules" -m "slow or verify" tests $(ARGS)

lint: style types ## Check style and types

style: setup
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(VENV)/bin/python tools/check_security.py --quiet --recursive src --configfile pyproject.toml --severity-level medium

types: setup
	$(RUN) mypy

format: setup ## Format the code, and fix what can be fixed automatically
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

lock: ## Regenerate the lock files from pyproject.toml (ARGS=--upgrade takes the newest versions)
	@tools/lock.sh $(ARGS)

audit-dependencies: setup ## Look up known vulnerabilities of the packages in requirements.lock
	@$(VENV)/bin/python tools/audit_dependencies.py

dist: setup ## Build what a release publishes, from the last commit, into dist/
	@$(VENV)/bin/python tools/dist.py

release-check: setup ## Go through the checklist of a release (ARGS=--quick leaves out what takes long)
	@$(VENV)/bin/python tools/release_check.py $(ARGS)

docs: setup ## Build the documentation into site/, with warnings as errors, and check its links
	@$(VENV)/bin/python tools/docs.py

bench: setup ## Run the benchmarks that take a minute; the pages in docs/ name the commands of the others
	@for name in import_time simulation "ingest --quick"; do \
	  echo "== $$name"; set -- $$name; $(VENV)/bin/python benchmarks/$$1.py $$2 || exit 1; done

bench-rivals: ## Measure the oracles against other libraries, in .venv-rivals
	@tools/setup.sh rivals
	.venv-rivals/bin/python benchmarks/oracles.py $(ARGS)

clean: ## Remove everything that was built, including .venv
	rm -rf .venv .venv-rivals .uv .system tests/page/js/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis dist site docs/generated demo-output
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
