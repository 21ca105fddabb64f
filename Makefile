# The one task runner. Each target runs with the tools of the environment that is active.
.PHONY: build test lint types docs format check sanitize bench clean

build:  ## compile the core in place, after a change to a .pyx or .pxd file
	python setup.py --quiet build_ext --inplace

test: build  ## the whole suite
	pytest -n auto

lint:
	ruff check .
	ruff format --check .

format:
	ruff check --fix .
	ruff format .

types:
	mypy

docs:  ## links, options, examples and names in the docs
	pytest --quiet tests/docs

check: lint types test docs  ## all that .ci/run asks, but the wheel

bench:  ## the benchmark behind docs/performance.md; takes a while
	python -m benchmarks

clean:
	rm -rf build dist detap/*/*.c detap/*/*.so
