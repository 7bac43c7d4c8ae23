PYTHON ?= .venv/bin/python

.PHONY: venv check lint types test slow mutants hunt-long bench golden docs pictures evidence

venv:
	python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt -e '.[dev]'

check: lint types test

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:
	$(PYTHON) -m mypy

test:
	$(PYTHON) -m pytest -q -n 3

slow:
	$(PYTHON) -m pytest -q -m slow

mutants:
	rm -f mutants.sqlite
	.venv/bin/cosmic-ray init cosmic-ray.toml mutants.sqlite
	PATH=$(CURDIR)/.venv/bin:$$PATH .venv/bin/cosmic-ray exec cosmic-ray.toml mutants.sqlite
	.venv/bin/cr-report mutants.sqlite

COUNT ?= 10000
MINUTES ?= inf
hunt-long:
	$(PYTHON) -m tests.extensions.conformance.hunt $(COUNT) --minutes $(MINUTES)

bench:
	$(PYTHON) -m benchmarks

golden:
	$(PYTHON) -m tests.golden

docs:
	$(PYTHON) -m sphinx -W --keep-going docs docs/_build/html

pictures:
	$(PYTHON) docs/pictures.py

BUDGET ?= 3h
evidence:
	$(PYTHON) -m coband reproduce all --resume --nice --workers 1 --budget $(BUDGET) --results docs/reproductions/results --pages docs/reproductions
