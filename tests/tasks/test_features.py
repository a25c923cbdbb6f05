"""Features by layer choice, and the files they are written to."""

import dataclasses
import sys

import numpy as np
import pytest

from tfnlp.models import build_model
from tfnlp.tasks import check_features_file, extract_features, write_features
from tfnlp.text import LengthBatches
from tfnlp.text.tokenizers.tokenizer import Encoding
from tfnlp.utils.errors import InputError

TEXTS = ["the film is not dull", "a fine plot", "영화"]


@pytest.fixture
def parts(tiny_config, tokenizer):
    model = build_model(dataclasses.replace(tiny_config, num_layers=4), hidden_states=True)
    encodings = tokenizer.encode(TEXTS)
    return model, encodings, LengthBatches(encodings, 2)


JOINED = {
    "last": lambda s: s[4],
    "second_to_last": lambda s: s[3],
    "sum_last_four": lambda s: s[1] + s[2] + s[3] + s[4],
    "concat_last_four": lambda s: np.concatenate(s[1:], -1),
}
POOLED = {"none": lambda x: x, "first": lambda x: x[0], "mean": lambda x: x.mean(0)}


@pytest.mark.parametrize(
    ("layers", "pooling"),
    [*((layers, "none") for layers in JOINED), ("last", "first"), ("sum_last_four", "mean")],
)
def test_layers_and_poolings(layers, pooling, parts):
    model, encodings, batches = parts
    found = extract_features(model, batches, layers, pooling)
    for encoding, features in zip(encodings, found, strict=True):
        ids, segments = np.array([encoding.token_ids]), np.array([encoding.segment_ids])
        inputs = {"token_ids": ids, "segment_ids": segments, "padding_mask": np.ones_like(ids)}
        states = [s[0].numpy() for s in model(inputs)["hidden_states"]]
        expected = POOLED[pooling](JOINED[layers](states))
        np.testing.assert_allclose(features, expected, atol=1e-4)


def test_files(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs .[parquet]")
    tokens = [np.arange(6.0).reshape(3, 2), np.arange(6.0, 10.0).reshape(2, 2)]
    ids = [Encoding([2, 7, 3], [0] * 3), Encoding([2, 3], [0] * 2)]
    write_features(tmp_path / "texts.npz", [rows[0] for rows in tokens], ["a", "b"], ids)
    np.testing.assert_array_equal(np.load(tmp_path / "texts.npz")["features"], [[0, 1], [6, 7]])
    write_features(tmp_path / "tokens.npz", tokens, ["a", "b"], ids)
    found = np.load(tmp_path / "tokens.npz")
    np.testing.assert_array_equal(found["features"], np.arange(10.0).reshape(5, 2))
    assert found["text"].tolist() == [0, 0, 0, 1, 1]
    assert found["token_id"].tolist() == [2, 7, 3, 2, 3]
    for features, numbers in ((tokens, [0, 0, 0, 1, 1]), ([rows[0] for rows in tokens], [0, 1])):
        write_features(tmp_path / "a.parquet", features, ["a", "b"], ids)
        table = parquet.read_table(tmp_path / "a.parquet").to_pydict()
        assert table["text"] == ["ab"[i] for i in numbers]
        np.testing.assert_array_equal(table["features"], np.vstack(features))


def test_unwritable_files_are_refused_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    (tmp_path / "folder.npz").mkdir()
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as where it is not installed
    for name, said in (
        ("a.npy", r"a\.npy must end in \.npz or \.parquet"),
        ("a.parquet", r"\.parquet needs pyarrow"),
        ("file/b/a.npz", "cannot be written: .*file is a file"),
        ("folder.npz", "is a folder"),
    ):
        with pytest.raises(InputError, match=said):
            check_features_file(tmp_path / name)
    check_features_file(tmp_path / "new" / "b.npz")
    assert not (tmp_path / "new").exists()


def test_too_few_layers_are_named(tiny_config, parts):
    model = build_model(tiny_config, hidden_states=True)
    with pytest.raises(InputError, match=r"^layers=sum_last_four needs 4 layers.* has 3"):
        extract_features(model, parts[2], "sum_last_four")
