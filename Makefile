# `make advise [PROFILE=path]`: environment, installation, report.   `make test`: all tests.   `make check`: lint, types,
# generated documents.
# `make quick`: lint and a core of the tests in half a minute, for the loop of an edit.
PYTHON ?= python3
VENV ?= .venv
PROFILE ?= examples/slow-rank-pipeline
REPORT ?= out/advisor-report.html
BIN := $(VENV)/bin
# One more than there are processors: a dozen tests wait for servers, watchers and children most of their time.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# One test file or folder of every room, chosen to be fast: words, rules' language, engine, facts, reports, real recordings.
QUICK := tests/knowledge tests/test_recordings.py tests/test_units.py tests/test_intervals.py tests/test_config.py \
  tests/ruleset/test_expression.py tests/ruleset/test_evaluate.py tests/ruleset/test_templates.py tests/engine/concluding \
  tests/facts/data tests/collect tests/render/test_wording.py

.PHONY: advise test quick check docs clean

# durable-rules has no wheels and needs a C compiler; without one everything works on the built-in engine.
# Modules are compiled here: where Python is told to keep none (PYTHONDONTWRITEBYTECODE, as in containers), each command
# would compile them anew.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -e . || ( \
	  echo "durable-rules could not be built here; installing without it" && \
	  $(PYTHON) .ci/requirements.py --without durable-rules > $(VENV)/requirements.txt && \
	  $(BIN)/pip install -q -r $(VENV)/requirements.txt && $(BIN)/pip install -q --no-deps -e . )
	$(BIN)/python -m compileall -q advisor
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	for extra in dev cluster mcp serve; do $(PYTHON) .ci/requirements.py --extra $$extra; done > $(VENV)/requirements-dev.txt
	$(BIN)/pip install -q -r $(VENV)/requirements-dev.txt
	@touch $@

advise: $(VENV)/.installed
	@mkdir -p "$$(dirname "$(REPORT)")"
	@$(BIN)/advisor advise "$(PROFILE)" --format text --format "html:$(REPORT)"
	@echo "Report: $$(realpath "$(REPORT)")"

# The generated documents first: what `advisor rules new` has just written belongs in them.
test: docs
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

quick: $(VENV)/.installed-dev
	$(BIN)/ruff check -q .
	$(BIN)/advisor rules lint
	$(BIN)/python -m pytest -q -n $(WORKERS) $(QUICK)

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check

docs: $(VENV)/.installed-dev
	$(BIN)/python docs/generate.py

clean:
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis
