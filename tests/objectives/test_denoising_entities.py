"""The denoising entity auto-encoder: shares of noise, eq. 6, batches, refusals."""

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.knowledge import EntityTokenizer
from tfnlp.models import BertConfig, build_model, with_entities
from tfnlp.objectives import Corpus, DenoisingEntities, MaskedLM
from tfnlp.objectives.denoising_entities import candidates_of
from tfnlp.text import WordPieceTokenizer
from tfnlp.utils.errors import InputError

LETTERS = "bcdefghjklmnopqr"
PLAIN = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS])
TOKENIZER = EntityTokenizer.of(PLAIN, {letter: i + 1 for i, letter in enumerate(LETTERS[:10])})


def corpus(sentences=60, seed=0):
    rng = np.random.default_rng(seed)
    rows = [rng.integers(5, 5 + len(LETTERS), rng.integers(1, 9)) for _ in range(sentences)]
    return Corpus.from_documents([[row] for row in rows])


def test_shares_of_alignments_are_those_of_the_paper():
    rng = np.random.default_rng(0)
    entities = np.where(rng.random((400, 100)) < 0.5, rng.integers(1, 1000, (400, 100)), 0)
    noisy, real = DenoisingEntities().align(entities, rng), entities > 0
    assert not noisy[~real].any() and set(noisy[noisy > 0]) <= set(entities[real])
    count = real.sum()
    hidden = (noisy[real] == 0).mean()
    changed = ((noisy != entities) & (noisy > 0))[real].mean()
    for share, due in ((hidden, 0.15), (changed, 0.05)):
        assert abs(share - due) < 4 * np.sqrt(due * (1 - due) / count) + 0.05 / 1000
    assert not DenoisingEntities(hidden=1, replaced=0).align(entities, rng).any()
    exact = DenoisingEntities(hidden=0, replaced=0).align(entities, rng)
    np.testing.assert_array_equal(exact, entities)
    none = np.zeros((2, 3), "int32")
    np.testing.assert_array_equal(DenoisingEntities().align(none, rng), none)


def test_candidates_are_the_entities_of_each_text():
    ids = np.array([[0, 7, 3, 7, 0], [0, 0, 0, 0, 0], [2, 0, 0, 0, 9]], "int32")
    candidates, labels = candidates_of(ids)
    assert candidates.tolist() == [[3, 7], [0, 0], [2, 9]]
    assert labels.tolist() == [*([-100, 1, 0, 1, -100], [-100] * 5, [0, -100, -100, -100, 1])]
    assert candidates_of(np.zeros((2, 3), "int32"))[0].tolist() == [[0, 0], [0, 0]]


def test_batches_have_the_entities_of_the_text_before_it_is_masked():
    batches = DenoisingEntities().batches(corpus(), TOKENIZER, 4, 20, seed=5)
    assert (
        batches.fingerprint()
        == DenoisingEntities().batches(corpus(), TOKENIZER, 4, 20, seed=5).fingerprint()
        != DenoisingEntities(hidden=0.5).batches(corpus(), TOKENIZER, 4, 20, seed=5).fingerprint()
    )
    first, again = (next(batches.epoch(1)) for _ in range(2))
    tf.nest.map_structure(np.testing.assert_array_equal, first, again)
    tf.nest.assert_same_structure(first, batches.signature())
    masked = 0
    for inputs, labels in batches.epoch():
        whole, positions = inputs["token_ids"].copy(), inputs["masked_positions"]
        rows = np.nonzero(labels["tokens"] != -100)[0]
        whole[rows, positions[labels["tokens"] != -100]] = labels["tokens"][
            labels["tokens"] != -100
        ]
        masked += (whole != inputs["token_ids"]).sum()
        due = np.where((whole >= 5) & (whole < 15), whole - 4, 0)
        real = labels["entities"] != -100
        np.testing.assert_array_equal(real, due > 0)
        rows = np.nonzero(real)[0]
        found = inputs["candidate_ids"][rows, labels["entities"][real]]
        np.testing.assert_array_equal(found, due[real])
        assert not inputs["entity_ids"][due == 0].any()
    assert masked > 10


@pytest.fixture(scope="module")
def model():
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 16}
    config = BertConfig(PLAIN.vocabulary_size, **sizes, max_length=20, initializer_range=0.5)
    table = np.random.default_rng(0).normal(size=(10, 8))
    return with_entities(build_model(config, "masked_lm"), table, 1, 2)


def test_logits_and_loss_are_those_of_eq_6(model):
    objective = DenoisingEntities()
    trained = objective.trained(model)
    batch = next(objective.batches(corpus(), TOKENIZER, 4, 20, seed=5).epoch())
    inputs, labels = batch
    outputs = trained(inputs)
    states = model({name: x for name, x in inputs.items() if name in model.input})
    states = np.asarray(states["sequence_output"], "float64")
    predictor, table = trained.get_layer("entity_predictor"), model.get_layer("entity_embeddings")
    kernel, bias, rows = (np.asarray(w) for w in (*predictor.weights, table.embeddings))
    losses, right = [], []
    for b, i in zip(*np.nonzero(labels["entities"] != -100), strict=True):
        candidates = inputs["candidate_ids"][b]
        scores = rows[candidates[candidates > 0]] @ (states[b, i] @ kernel + bias)
        np.testing.assert_allclose(
            outputs["entity_logits"][b, i, : len(scores)], scores, atol=1e-4
        )
        label = labels["entities"][b, i]
        losses.append(np.log(np.exp(scores - scores.max()).sum()) + scores.max() - scores[label])
        right.append(scores.argmax() == label)
    found = objective.losses(labels, outputs)
    assert found.keys() == objective.loss_weights.keys()
    np.testing.assert_allclose(found["entity_loss"], np.mean(losses), rtol=1e-4)
    expected = MaskedLM().losses(labels["tokens"], outputs)["masked_lm_loss"]
    np.testing.assert_allclose(found["masked_lm_loss"], expected)
    total, weight = objective.scores(labels, outputs)["entity_accuracy"]
    assert int(total) == sum(right) and int(weight) == len(right)


def test_a_batch_without_entities_has_no_entity_loss(model):
    objective = DenoisingEntities()
    trained = objective.trained(model)
    rows = Corpus.from_documents([[np.array([16, 17, 18])], [np.array([19, 17])]])
    inputs, labels = next(objective.batches(rows, TOKENIZER, 2, 20).epoch())
    with tf.GradientTape() as tape:
        losses = objective.losses(labels, trained(inputs))
    assert float(losses["entity_loss"]) == 0 < float(losses["masked_lm_loss"])
    for gradient in tape.gradient(sum(losses.values()), trained.trainable_weights):
        if gradient is not None:
            assert np.isfinite(tf.convert_to_tensor(gradient)).all()


def test_what_does_not_fit_is_told(model):
    objective = DenoisingEntities()
    objective.check(model.text_config, TOKENIZER)
    for call, word in (
        (lambda: objective.check(model.text_config, PLAIN), "no entities"),
        (lambda: MaskedLM().check(model.text_config, TOKENIZER), "reads entities"),
        (lambda: DenoisingEntities(replaced=0.6, hidden=0.6), "1 at most"),
        (lambda: DenoisingEntities(hidden=2), "hidden=2"),
    ):
        with pytest.raises(InputError, match=word):
            call()
