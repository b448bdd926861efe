# Every target sets up what it needs, so each can be the first command on a fresh machine.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOWEST := .venv-lowest

# No test or example may fetch anything.
export HF_HUB_OFFLINE := 1
# What an AVX2 processor would do, and the end of the process at the first write beyond a block of memory.
test-memory: export ONEDNN_MAX_CPU_ISA := AVX2
test-memory: export ATEN_CPU_CAPABILITY := avx2
test-memory: export MALLOC_CHECK_ := 3
test-memory: export MALLOC_PERTURB_ := 165

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-vision test-slow test-memory test-lowest package lint format figures docs bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## create .venv and install echelon with everything for development

$(READY): pyproject.toml constraints.txt src/echelon/_version.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $(READY)

demo: $(READY) ## fit, evaluate and predict on generated data, and write a page about it
	$(BIN)/python examples/demo.py

test: $(READY) ## run the tests, the doctests and the code of the README and the docs
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-vision: $(READY) ## export every method with ResNet34 and VGG16 to ONNX, from pixels
	$(BIN)/python -m pytest -n 2 tests/slow/test_vision_onnx.py

test-slow: test ## run the long tests too, and more examples of every property
	ECHELON_THOROUGH=1 $(BIN)/python -m pytest -n 2 --timeout 1800 -o faulthandler_timeout=1790 \
		tests/contracts tests/functional tests/data tests/evaluation tests/training tests/test_curve.py \
		tests/models/test_network.py
	$(BIN)/python -m pytest --timeout 1800 -o faulthandler_timeout=1790 tests/slow

test-memory: $(READY) ## run the tests with a memory check, as on a processor with AVX2 and no more
	LD_PRELOAD=libc_malloc_debug.so.0 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --timeout 600 -o faulthandler_timeout=590

test-lowest: ## run the tests of the core with the lowest versions that pyproject.toml allows
	test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	$(PYTHON) tests/lowest.py > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pip install --quiet -r $(LOWEST)/lowest.txt hypothesis pytest pytest-timeout pytest-xdist
	$(LOWEST)/bin/python -m pip install --quiet --no-deps .
	$(LOWEST)/bin/python -m pytest -n 2 tests/slow/test_core.py

package: $(READY) ## build the wheel and the source archive, and look at what is in them
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tests/archives.py dist

lint: $(READY) ## check format, style, types and the layering of the modules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## format the code and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## time losses, training and prediction, and compare accuracy (hours; needs ECHELON_DATA)
	$(BIN)/python benchmarks/losses.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/floor.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/experiments.py
	$(BIN)/python benchmarks/text.py
	$(BIN)/python benchmarks/images.py

figures: $(READY) ## draw the figures of the README and the docs again
	$(BIN)/python docs/making/figures.py

docs: $(READY) ## build the site into build/site, where index.html can be opened
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

clean: ## remove what the other targets made
	rm -rf $(VENV) $(LOWEST) build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
