"""Files that take strings, with the tokenizer in the graph."""

import concurrent.futures
import dataclasses

import pytest

from distill.export.options import Export
from distill.export.tflite import export_tflite
from distill.runtime import StringClassifier
from tests.distill.runtime.test_litert_backend import rewritten
from tfnlp.models import build_model
from tfnlp.utils.errors import InputError

LABELS = ["bad", "good"]


TEXTS = [
    "a fine film",
    "",
    "정말 좋다!",
    "the\tplot\x00 is\x07 dull, 字 film",
    "unbelievably zzz",
    "x " * 60,
]


@pytest.fixture(scope="module")
def model(tiny_config):
    return build_model(dataclasses.replace(tiny_config, num_layers=1), "classifier", 2)


def test_threads_share_a_classifier_of_strings(model, tokenizer, tmp_path):
    path = tmp_path / "m.tflite"
    options = {"quantization": "float32", "max_length": 20, "tokenizer_in_graph": True}
    export_tflite(model, path, tokenizer, LABELS, Export(**options))
    classifier = StringClassifier(path)
    expected = [classifier.classify(text)[0] for text in TEXTS]
    assert [answer.truncated for answer in expected] == [False] * 5 + [True]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = pool.map(classifier.classify, TEXTS * 50)
        assert [answer for (answer,) in answers] == expected * 50
    assert classifier.classify("a film\ud800") == classifier.classify("a film\ufffd")
    with pytest.raises(InputError, match=r"m\.tflite takes one string, not pairs"):
        classifier.classify("a film", "fine")
    with pytest.raises(InputError, match=r"texts\[1\] is None"):
        classifier.classify(["a", None])
    with pytest.raises(InputError, match="num_threads=0 must be at least 1"):
        StringClassifier(path, num_threads=0)
    other = rewritten(path, tmp_path / "other.tflite", labels="bad")
    with pytest.raises(InputError, match=r"holds 1 labels in labels\.txt, but its model has 2"):
        StringClassifier(other)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(InputError, match=r"no \.tflite with a tokenizer inside"):
        StringClassifier(path)
