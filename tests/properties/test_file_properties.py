"""A file that was cut or changed is refused in a sentence, or read as it was."""

import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.text.family_tokenizers import ids_of, tokenizer_of
from tfnlp.checkpoints import load_model, save_model
from tfnlp.configs import config_by_name
from tfnlp.models import build_model
from tfnlp.text import load_tokenizer
from tfnlp.utils.errors import InputError

# The copy is written anew by each example.
EACH_WRITES = settings(
    max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
TEXTS = ["정말 재미있는 영화였다 !", "a naïve café"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a model of random weights and its tokenizer."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = tokenizer_of("bert")
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 4, "intermediate_dim": 4}
    config = config_by_name("bert", vocabulary_size=tokenizer.vocabulary_size, **sizes)
    save_model(build_model(config, "classifier", 2), folder, ["no", "yes"], tokenizer)
    return folder


def broken_copy(folder, target, name, end, bits):
    """Copy a folder, with one file cut at a share of it, or with flipped bits there."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    content = bytearray((folder / name).read_bytes())
    place = min(int(end * len(content)), len(content) - 1)
    if bits:
        content[place] ^= bits
    else:
        del content[place:]
    (target / name).write_bytes(content)
    return target


@EACH_WRITES
@given(st.floats(0, 0.999))
def test_cut_weights_are_refused(folder, tmp_path, end):
    with pytest.raises(InputError, match=r"model\.safetensors"):
        load_model(broken_copy(folder, tmp_path / "copy", "model.safetensors", end, 0))


@EACH_WRITES
@given(st.floats(0, 1), st.integers(1, 255))
def test_a_flipped_header_of_weights_is_refused_or_names_the_same(folder, tmp_path, end, bits):
    size = int.from_bytes((folder / "model.safetensors").read_bytes()[:8], "little") + 8
    share = end * size / (folder / "model.safetensors").stat().st_size
    copy = broken_copy(folder, tmp_path / "copy", "model.safetensors", share, bits)
    try:
        model = load_model(copy)
    except InputError:
        return
    shapes = [(w.path, w.shape) for w in load_model(folder).weights]
    assert [(w.path, w.shape) for w in model.weights] == shapes


@EACH_WRITES
@given(
    st.sampled_from(["tokenizer.json", "tokenizer_config.json", "config.json", "vocab.txt"]),
    st.floats(0, 0.999),
    st.integers(0, 255),
)
def test_a_broken_tokenizer_is_refused_or_a_tokenizer(folder, tmp_path, name, end, bits):
    copy = broken_copy(folder, tmp_path / "copy", name, end, bits)
    try:
        tokenizer = load_tokenizer(copy)
    except InputError as e:
        assert str(copy) in str(e)
        return
    assert all(max(ids) < tokenizer.vocabulary_size for ids in ids_of(tokenizer, TEXTS))
