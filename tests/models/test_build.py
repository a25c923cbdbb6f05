"""Models of every family from scratch, with a tokenizer of their kind."""

import keras
import numpy as np
import pytest

from tests.models.small import TEXTS, tokenizer_of
from tfnlp.checkpoints import check_saves, load_model, save_model
from tfnlp.models import FAMILIES, build_model, check_vocabulary, config_by_name
from tfnlp.text import load_tokenizer
from tfnlp.text.tokenizers.tokenizer_loading import kind_for
from tfnlp.utils.errors import InputError

KINDS = {
    "bpe": {"roberta", "deberta", "gpt2", "modernbert"},
    "words": {"elmo"},
    "unigram": {"albert", "xlnet", "deberta_v2", "deberta_v3", "xlm_roberta"},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_from_scratch_comes_back_from_its_folder_and_its_keras_file(family, tmp_path):
    attends, layers = config_by_name(family).attends, family not in ("textcnn", "bag", "static")
    sizes = {"hidden_dim": 16} | ({"num_layers": 1} if layers else {})
    sizes |= {"num_heads": 2} if attends else {}
    kind = next((k for k, families in KINDS.items() if family in families), "wordpiece")
    assert kind_for(config_by_name(family).model_type) == kind
    tokenizer = tokenizer_of(family)
    config = config_by_name(
        family,
        **sizes,
        vocabulary_size=tokenizer.vocabulary_size,
        pad_token_id=tokenizer.pad_token_id,
    )
    assert type(config) is FAMILIES[family]
    assert (config.num_layers, config.hidden_dim) == (int(layers), 16)
    assert not attends or config.intermediate_dim == 64
    model = build_model(config, "classifier", 2)
    for weight in model.weights:  # biases too are not what they begin as
        weight.assign_add(0.1 * np.random.default_rng(0).normal(size=weight.shape))
    save_model(model, tmp_path, tokenizer=tokenizer)
    model.save(tmp_path / "model.keras")
    loaded, expected = load_tokenizer(tmp_path), model(tokenizer(TEXTS[:2]))["logits"]
    kept = keras.models.load_model(tmp_path / "model.keras")
    for again in (load_model(tmp_path, "classifier"), kept):
        check_vocabulary(loaded, again)
        same = again.text_config == config or family == "transformer_xl"  # whose file fills None
        assert same and again.head == "classifier"
        assert len(again.trainable_weights) == len(model.trainable_weights)
        np.testing.assert_allclose(again(loaded(TEXTS[:2]))["logits"], expected, atol=1e-6)


def test_models_that_no_folder_describes_are_refused_before_training():
    sizes = {"num_layers": 1, "hidden_dim": 16}
    for fields, head, word in (
        ({}, "tagger", "'tagger'"),
        ({"intermediate_dim": 20}, "classifier", "intermediate_dim=20"),
    ):
        with pytest.raises(InputError, match=word):
            check_saves(build_model(config_by_name("gpt", **sizes, **fields), head, 3))


@pytest.mark.parametrize(
    ("family", "fields", "head", "options"),
    [
        ("lstm", {"bidirectional": True}, "causal_lm", {}),
        ("transformer", {}, "classifier", {}),
        ("bert", {}, "sequence_to_sequence", {}),
        ("bert", {}, None, {"memory": True}),
        ("lstm", {"bidirectional": True}, "classifier", {"memory": True}),
        ("lstm", {}, "causal_lm", {"block_size": 4}),
        ("textcnn", {}, "tagger", {}),
        ("xlnet", {}, "permutation_lm", {"attention_projections": True}),
    ],
)
def test_heads_and_options_that_do_not_fit_are_refused(family, fields, head, options):
    (name, value), *_ = (*options.items(), ("head", head))
    with pytest.raises(InputError, match=f"{name}={value!r} does not fit the family"):
        build_model(config_by_name(family, **fields), head, 2, **options)
