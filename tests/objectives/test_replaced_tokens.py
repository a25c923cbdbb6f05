"""Replaced-token detection: losses, shared tables and training."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.objectives.small import CONFIGS, make_batch, texts_of
from tfnlp.models import BertConfig, ElectraConfig, build_model
from tfnlp.objectives import Corpus, ReplacedTokens
from tfnlp.text import WordPieceTokenizer
from tfnlp.utils.errors import InputError

TEXTS = [["a fine film .", "the plot is dull !"], ["unbelievable ,", "not a dull film , is x"]]


def corpus_of(tokenizer, texts=TEXTS):
    return Corpus.from_documents(
        [[e.token_ids[1:-1] for e in tokenizer.encode(text)] for text in texts]
    )


def gradients(tape, loss, models):
    """Of every weight of both models, 0 where there is none: dicts by path."""
    found = {}
    for name, model in models.items():
        values = tape.gradient(loss, [w.value for w in model.trainable_weights])
        found[name] = {
            w.path: None if g is None else tf.convert_to_tensor(g).numpy()
            for w, g in zip(model.trainable_weights, values, strict=True)
        }
    return found


def test_losses_by_hand():
    objective = ReplacedTokens()
    logits = np.zeros((2, 2, 4), "float32")
    logits[0, 0] = np.log([1, 2, 4, 1])
    outputs = {
        "generator_logits": logits,
        "logits": np.array([[0.0, np.log(3), -9.0], [np.log(7), 0.0, 5.0]], "float32"),
        "replaced": np.array([[0, 1, 0], [0, 0, 0]], "int32"),
        "padding_mask": np.array([[1, 1, 0], [1, 0, 0]], "int32"),
    }
    labels = np.array([[2, -100], [1, -100]], "int32")
    losses = objective.losses(labels, outputs)
    # Shares 4 / 8 and 1 / 4 of the tokens; 1 / 2 of an original, 3 / 4 of a replaced one, 1 / 8.
    generator = (np.log(2) + np.log(4)) / 2
    discriminator = (np.log(2) + np.log(4 / 3) + np.log(8)) / 3
    np.testing.assert_allclose(losses["generator_loss"], generator, rtol=1e-6)
    np.testing.assert_allclose(losses["discriminator_loss"], discriminator, rtol=1e-6)
    assert objective.loss_weights == {"generator_loss": 1.0, "discriminator_loss": 50.0}
    second = objective.losses(labels, outputs, np.array([0.0, 1.0], "float32"))
    np.testing.assert_allclose(second["generator_loss"], np.log(4), rtol=1e-6)
    np.testing.assert_allclose(second["discriminator_loss"], np.log(8), rtol=1e-6)
    scores = objective.scores(labels, outputs)
    scores = {name: [float(x) for x in pair] for name, pair in scores.items()}
    assert scores == {
        "masked_accuracy": [1, 2],
        "accuracy": [2, 3],
        "precision": [1, 2],
        "recall": [1, 1],
        # The replaced token's log 3 is above one kept token's 0, and below the other's log 7.
        "auc": [1, 2],
        "replaced_share": [1, 3],
    }


@pytest.mark.parametrize("name", CONFIGS)
def test_generators_are_of_the_size_of_the_papers(name):
    config = CONFIGS[name]
    found = ReplacedTokens().generator_config(config)
    if name.startswith("electra"):
        due = {"hidden_dim": 4, "num_heads": 1, "intermediate_dim": 8}
        assert found == dataclasses.replace(config, **due)
        halved = ReplacedTokens(generator_size=0.5).generator_config(config)
        half = {"hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}
        assert halved == dataclasses.replace(config, **half)
    else:
        decoder = name == "deberta_v3"
        due = {"num_layers": 1, "enhanced_mask_decoder": decoder}
        assert found == dataclasses.replace(config, **due)
    base = ElectraConfig(num_heads=12, hidden_dim=768, intermediate_dim=3072, embedding_dim=768)
    # The released generator of the base size.
    third = ReplacedTokens(generator_size=1 / 3).generator_config(base)
    assert (third.hidden_dim, third.num_heads, third.intermediate_dim) == (256, 4, 1024)
    assert third.embedding_dim == 768 and third.num_layers == 12


@pytest.mark.parametrize("name", CONFIGS)
def test_the_trained_model_joins_both_models_without_leaks(name, no_graphs):
    objective = ReplacedTokens()
    models = objective.build(CONFIGS[name])
    trained = objective.trained(models)
    assert {id(w) for w in trained.trainable_weights} == {
        id(w) for model in models.values() for w in model.trainable_weights
    }
    inputs, labels, whole = make_batch()
    outputs = trained(inputs)
    generator = models["generator"](texts_of(inputs))["logits"].numpy()
    positions = inputs["masked_positions"]
    expected = np.take_along_axis(generator, positions[:, :, None], 1)
    np.testing.assert_allclose(outputs["generator_logits"], expected, atol=1e-5)
    # What the discriminator reads, drawn again in NumPy.
    text = whole.copy()
    shares = np.exp(expected - expected.max(-1, keepdims=True)).astype("float64")
    sums = np.cumsum(shares, -1) / shares.sum(-1, keepdims=True)
    for row, column in np.argwhere(labels > 0):
        token = np.searchsorted(sums[row, column], inputs["draws"][row, column], "right")
        text[row, positions[row, column]] = token
    np.testing.assert_array_equal(outputs["replaced"], text != whole)
    assert 0 < np.sum(outputs["replaced"]) <= 5
    logits = models["discriminator"](texts_of(inputs, token_ids=text))["logits"]
    np.testing.assert_allclose(outputs["logits"], logits, atol=1e-5)
    np.testing.assert_array_equal(outputs["padding_mask"], inputs["padding_mask"])

    # Another original token changes what counts as replaced, and no prediction.
    other = inputs | {"masked_ids": np.where(labels > 0, labels % 23 + 5, labels)}
    again = trained(other)
    for key in ("generator_logits", "logits"):
        np.testing.assert_array_equal(again[key], outputs[key])
    # A text that pads, or a draw for no token, moves nothing.
    other = dict(inputs, draws=np.where(labels > 0, inputs["draws"], 0.0))
    np.testing.assert_array_equal(trained(other)["logits"], outputs["logits"])


@pytest.mark.parametrize("name", ["electra", "deberta", "deberta_v3"])
def test_each_loss_trains_its_own_weights(name, no_graphs):
    objective = ReplacedTokens()
    models = objective.build(CONFIGS[name])
    trained = objective.trained(models)
    inputs, labels, _ = make_batch()
    with tf.GradientTape(persistent=True) as tape:
        losses = objective.losses(labels, trained(inputs))
    of_generator = gradients(tape, losses["generator_loss"], models)
    of_discriminator = gradients(tape, losses["discriminator_loss"], models)
    own = [{id(w): w.path for w in m.trainable_weights} for m in models.values()]
    common = {own[0][key] for key in own[0].keys() & own[1].keys()}
    tables = {"embeddings/token_table"}
    if name.startswith("electra"):
        tables |= {f"embeddings/{t}" for t in ("position_table", "segment_table")}
        assert common == tables | {"embeddings/norm/gamma", "embeddings/norm/beta"}
        # Both losses reach what is shared.
        for path in common:
            assert np.abs(of_generator["generator"][path]).max() > 0
            assert np.abs(of_discriminator["generator"][path]).max() > 0
    else:
        tables |= {"embeddings/position_table"} if name == "deberta" else set()
        assert common == tables
        assert all(of_discriminator["generator"][path] is None for path in tables)
        for path in tables:
            delta = path.replace("table", "difference")
            assert np.abs(of_discriminator["discriminator"][delta]).max() > 0
            assert of_generator["discriminator"][delta] is None
    for path, gradient in of_generator["discriminator"].items():
        assert (gradient is None) == (path not in common)
    for path, gradient in of_discriminator["generator"].items():
        assert (gradient is None) == (path not in common or "deberta" in name)


@pytest.mark.parametrize("name", ["electra", "deberta_v3"])
def test_training_starts_from_given_models(name, no_graphs):
    objective, inputs = ReplacedTokens(), make_batch()[0]
    old = objective.build(CONFIGS[name])
    if name == "deberta_v3":
        difference = old["discriminator"].get_layer("embeddings").token_difference
        difference.assign(0.1 * np.random.default_rng(0).normal(size=difference.shape))
    texts = texts_of(inputs)
    due = {kind: model(texts)["logits"] for kind, model in old.items()}
    # As they are loaded: each by itself.
    plain = build_model(CONFIGS[name], "discriminator")
    paths = {weight.path: weight for weight in old["discriminator"].weights}
    sums = getattr(old["discriminator"].get_layer("embeddings"), "sums", dict)()
    for weight in plain.weights:
        weight.assign(sums.get(weight.path.removeprefix("embeddings/"), paths[weight.path]))
    keras.utils.set_random_seed(5)
    both = objective.build(CONFIGS[name], discriminator=plain, generator=old["generator"])
    for kind, model in both.items():
        np.testing.assert_allclose(model(texts)["logits"], due[kind], atol=2e-6)
    alone = objective.build(CONFIGS[name], discriminator=plain)
    found = alone["discriminator"](texts)["logits"]
    np.testing.assert_allclose(found, due["discriminator"], atol=2e-6)
    tables = (alone["generator"].get_layer("embeddings"), plain.get_layer("embeddings"))
    np.testing.assert_array_equal(*(layer.token_table for layer in tables))
    assert np.abs(alone["generator"](texts)["logits"] - due["generator"]).max() > 1e-2
    if name == "electra":
        plain.get_layer("embeddings").token_table.assign_add(np.ones((28, 8)))
        with pytest.raises(InputError, match="have other embeddings, so that they were not train"):
            objective.build(CONFIGS[name], discriminator=plain, generator=old["generator"])


def test_batches_draw_numbers_and_hide_the_share(tokenizer):
    corpus = corpus_of(tokenizer, TEXTS * 60)
    objective = ReplacedTokens()

    def batches(objective=objective, **options):
        return objective.batches(corpus, tokenizer, 16, 16, **{"seed": 3} | options)

    first, given = list(batches().epoch(1)), batches()
    draws = np.concatenate([inputs["draws"].ravel() for inputs, _ in first])
    assert draws.dtype == np.float32 and draws.min() >= 0 and draws.max() < 1
    assert len(np.unique(draws)) > 0.99 * len(draws)
    masked = kept = 0
    for epoch in range(40):
        for inputs, labels in given.epoch(epoch):
            there = np.take_along_axis(inputs["token_ids"], inputs["masked_positions"], 1)
            real = labels != -100
            np.testing.assert_array_equal(inputs["masked_ids"], labels)
            masked += np.sum(there[real] == tokenizer.mask_token_id)
            kept += np.sum(there[real] == labels[real])
    share, count = masked / (masked + kept), masked + kept
    assert abs(share - 0.85) < 3 * np.sqrt(0.85 * 0.15 / count)
    everything = batches(ReplacedTokens(masked=1.0))
    inputs, labels = next(everything.epoch())
    there = np.take_along_axis(inputs["token_ids"], inputs["masked_positions"], 1)
    assert (there[labels != -100] == tokenizer.mask_token_id).all()


def test_bad_arguments_are_refused(tokenizer):
    for name, value in (
        *(("generator_size", size) for size in (0, 1.5)),
        *(("discriminator_weight", 0), ("share", float("nan"))),
    ):
        with pytest.raises(InputError, match=f"{name}={value}"):
            ReplacedTokens(**{name: value})
    objective = ReplacedTokens()
    for call in (
        lambda: objective.check(BertConfig(), tokenizer),
        lambda: objective.build(BertConfig()),
    ):
        with pytest.raises(InputError, match="'bert'"):
            call()
    bare = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])
    with pytest.raises(InputError, match="MASK"):
        objective.check(CONFIGS["electra"], bare)


def test_documents_of_a_row_are_told_apart_by_both_models():
    objective = ReplacedTokens(packing="masked")
    trained = objective.trained(objective.build(CONFIGS["deberta_v3"], packed=True))
    inputs, _, _ = make_batch(rows=1, length=9, masked=2)
    inputs["positions"] = np.array([[0, 1, 2, 3, 4, 0, 1, 2, 3]], "int32")
    inputs["masked_positions"] = np.array([[2, 7]], "int32")
    inputs["masked_ids"] = inputs["token_ids"][:, [2, 7]]
    inputs["padding_mask"][:] = 1
    other = inputs | {"token_ids": np.where(np.arange(9) == 8, 6, inputs["token_ids"])}
    before, after = trained(inputs), trained(other)
    for name, parts in (
        ("generator_logits", [slice(1), slice(1, 2)]),
        ("logits", [slice(5), slice(5, 9)]),
    ):
        first, second = (np.abs(before[name] - after[name])[:, part].max() for part in parts)
        assert first < 1e-6 and second > 1e-3, name
