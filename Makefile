# The one task runner. Each target runs with the tools of the environment that is active.
.PHONY: build test lint types docs site format check mutate sanitize sweep audit fuzz reliability bench clean release-check integrations corpus

build:  ## compile the core in place and write its .pyi files, after a change to a .pyx or .pxd file
	python setup.py --quiet build_ext --inplace

test: build  ## the whole suite
	pytest -n auto

lint:
	ruff check .
	ruff format --check .

format:
	ruff check --fix .
	ruff format .

types: build
	mypy

# BASE: a commit, which is built in build/corpus, or BASE_CHECKOUT: a built checkout. ONLY: a pattern.
JOBS = 2

corpus: build  ## does anything differ from BASE? some thousand commands with both, byte for byte
	python -m tests.golden.corpus --jobs $(JOBS) --only '$(ONLY)' \
	    $(if $(BASE_CHECKOUT),--base-checkout $(BASE_CHECKOUT),--base $(BASE))

site:  ## the pages as a site, in build/site; any warning fails
	python -m sphinx --quiet --fail-on-warning --keep-going -b html docs build/site
	python -m docs.derive build/site

release-check:  ## may this version be published? fails while release.toml has placeholders
	python docs/release.py

integrations:  ## frameworks and trackers that are installed; needs `.[test,integrations]`
	pytest -ra tests/torch tests/integrations

docs:  ## links, options, examples and names in the docs
	pytest --quiet tests/docs

check: lint types build site test  ## lint, types, the site, and the suite with its tests of the docs; needs `.[dev,site]`

# GROUPS: of mutation/modules.toml, or `compiled`; ALL=1: every change, not a sample.
mutate: build  ## would the tests notice a defect? single changes, each in a copy; an hour or two
	python -m mutation $(if $(ALL),--all) $(GROUPS)

# The core is built in a copy of the checkout, so that the one in use stays as it is. CPython itself
# is not instrumented and keeps memory to its end: leaks are not looked for.
# pytrec_eval, an oracle of the ranking tests, frees what it made with new[]: none of ours does.
ASAN = detect_leaks=0:allocator_may_return_null=1:alloc_dealloc_mismatch=0
# These start processes without the preloaded library, or measure memory or time, which it multiplies.
UNPRELOADED = not peak_memory and not whole_process_is_timed and not take_250_mb and not takes_linear_time and not page_colors
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g
LIBRARY = $(shell gcc -print-file-name=lib$(1).so)

sanitize:  ## the suite over a core with AddressSanitizer and UndefinedBehaviorSanitizer (gcc)
	rm -rf build/sanitized build/sanitizer.* && mkdir -p build/sanitized
	git ls-files -co --exclude-standard -z | xargs -0 cp --parents -t build/sanitized
	cd build/sanitized && DETAP_BUILD_FLAGS="$(SANITIZE)" python setup.py --quiet build_ext --inplace
	cd build/sanitized && DETAP_DATA=$${DETAP_DATA:-$(CURDIR)/../shared/data} \
	    PYTHONPATH=$(CURDIR)/build/sanitized \
	    LD_PRELOAD="$(call LIBRARY,asan) $(call LIBRARY,ubsan)" PYTHONMALLOC=malloc \
	    ASAN_OPTIONS=$(ASAN):log_path=$(CURDIR)/build/sanitizer UBSAN_OPTIONS=print_stacktrace=1:log_path=$(CURDIR)/build/sanitizer \
	    python -m pytest --quiet -p no:cacheprovider --ignore tests/browser -k "$(UNPRELOADED)" $(TESTS) \
	    || { cat $(CURDIR)/build/sanitizer.* 2>/dev/null; exit 1; }

COUNT = 1000
SEED = 0

# SWEEPS: names of modules in tests/parity/sweep, by default all whose reference is installed.
sweep: build  ## random cases against the references (pycocotools, lvis, ...): COUNT of each from SEED on
	python -W ignore -m tests.parity.sweep $(SWEEPS) --count $(COUNT) --seed $(SEED)

audit:  ## known vulnerabilities of what is installed; asks a service on the network
	python -m pip install --quiet pip-audit
	python -m pip_audit --skip-editable || \
	    { echo "pip-audit found something, or could not reach its service: see above"; exit 1; }

MUTATIONS = 2000000
FUZZ = fuzz/cache/environment

fuzz: build  ## mutations of valid files through each reader of fuzz/targets.py; hours
	python -m fuzz --mutations $(MUTATIONS) --keep fuzz/cache/found
	python -m venv $(FUZZ) && $(FUZZ)/bin/pip install --quiet --requirement fuzz/requirements.txt -e .
	for target in $$(python -c "from fuzz.targets import TARGETS; print(*TARGETS)"); do \
	    $(FUZZ)/bin/python -m fuzz.coverage $$target -runs=$(MUTATIONS) || exit 1; done

reliability:  ## 2,000 kills, and the comparison of docs/reliability.md; needs benchmarks/cache
	python -m tests.reliability kills --count 1000
	python -m tests.reliability compare

bench:  ## the benchmark behind docs/performance.md; takes a while
	python -m benchmarks

clean:  ## remove what was compiled, and the site
	rm -rf build dist
	find detap -name '*.c' -delete -o -name '*.so' -delete -o -name '*.pyd' -delete -o -name '*.pyi' -delete
