"""Keras models as backends of pipelines."""

import numpy as np
import pytest

from tfnlp.configs import VectorHead
from tfnlp.models import GptConfig, build_model, with_vectors
from tfnlp.pipelines import Classifier, Embedder, KerasBackend
from tfnlp.tasks.kinds import CLASSIFIER, EMBEDDER, SCORER
from tfnlp.text import train_byte_level_bpe
from tfnlp.utils.errors import InputError


def test_labels_and_the_maximum_length_have_defaults(tiny_config, tokenizer):
    model = build_model(tiny_config, "classifier", 3)
    backend = KerasBackend(model, tokenizer)
    assert (backend.kind, backend.labels) == (CLASSIFIER, ["LABEL_0", "LABEL_1", "LABEL_2"])
    assert backend.max_length == tiny_config.max_length
    backend = KerasBackend(model, tokenizer, ["a", "b", "c"], {"max_length": 3})
    texts = ["film", "a fine film"]
    short, long = Classifier(backend).classify(texts)
    assert (short.truncated, long.truncated) == (False, True)
    assert sum(long.probabilities.values()) == pytest.approx(1)
    assert Classifier(backend).classify([]) == []


def test_the_kind_is_of_the_outputs(tiny_config, tokenizer):
    regression = build_model(tiny_config, "classifier", 1)
    assert KerasBackend(regression, tokenizer).kind is SCORER
    embedder = with_vectors(regression, VectorHead(("first",)))
    assert KerasBackend(embedder, tokenizer).kind is EMBEDDER


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_a_text_without_a_token_has_the_vector_0(pooling):
    tokenizer = train_byte_level_bpe(["a fine film"] * 5, 270, family="gpt2")
    sizes = {"num_layers": 1, "num_heads": 1, "hidden_dim": 8, "intermediate_dim": 12}
    config = GptConfig(vocabulary_size=tokenizer.vocabulary_size, max_length=16, **sizes)
    model = build_model(config, "embedder", vectors=VectorHead((pooling,)))
    backend = KerasBackend(model, tokenizer)
    rows = Embedder(backend).embed(["", "a film"])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [0, 1], atol=1e-6)


def test_texts_to_choose_from_have_no_vector(one_layer):
    with pytest.raises(InputError, match="'chooser' has not"):
        with_vectors(build_model(one_layer, "chooser"), VectorHead())


def test_a_prompt_begins_each_text(one_layer, tokenizer):
    model = build_model(one_layer, "embedder")
    settings = {"prompts": {"query": "the ", "plain": ""}, "default_prompt": "query"}
    plain, prompted = (Embedder(KerasBackend(model, tokenizer, None, x)) for x in ({}, settings))
    expected = plain.embed(["the film"])
    np.testing.assert_array_equal(prompted.embed(["film"]), expected)
    np.testing.assert_array_equal(prompted.embed(["the film"], prompt="plain"), expected)
    # A search asks for no other prompt than that of queries or texts, not even the default one.
    assert (prompted.query_prompt, prompted.text_prompt, plain.query_prompt) == ("query", "", "")
    np.testing.assert_array_equal(prompted.embed(["the film"], prompt=""), expected)
    with pytest.raises(InputError, match="prompt=passage"):
        prompted.embed("film", prompt="passage")
