"""The next token: losses, what predictions see, and the memory of each lane."""

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives.batches.test_token_stream import Tokens
from tests.objectives.small import numbered
from tfnlp.models import BertConfig, Gpt2Config, TransformerXLConfig, build_model
from tfnlp.objectives import CausalLM
from tfnlp.objectives.batches.lane_memory import lane_inputs
from tfnlp.utils.errors import InputError

SIZES = {"vocabulary_size": 50, "num_layers": 2, "num_heads": 2, "hidden_dim": 16}
SIZES |= {"intermediate_dim": 32, "dropout": 0.0, "initializer_range": 0.4}


GPT2 = Gpt2Config(**SIZES, max_length=24, embedding_dropout=0.0, attention_dropout=0.0)


XL = TransformerXLConfig(
    **SIZES, cutoffs=(10, 30), div_value=2, memory_length=6, clamp_length=None
)


def transformer_xl(**fields):
    return TransformerXLConfig(**SIZES | {"cutoffs": (), "same_length": False} | fields)


def rows(ids, continues=None):
    """Inputs and labels of rows of ids (B, L + 1)."""
    inputs = {"token_ids": ids[:, :-1], "segment_ids": 0 * ids[:, :-1]}
    inputs |= {"padding_mask": inputs["segment_ids"] + 1, "next_token_ids": ids[:, 1:]}
    if continues is not None:
        inputs |= lane_inputs(len(ids), continues)
    return inputs, ids[:, 1:]


def test_the_loss_by_hand():
    logits = np.log([[[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]], [[0.2, 0.2, 0.6], [0.4, 0.4, 0.2]]])
    labels = np.array([[0, 2], [1, -100]])
    probabilities = [0.5, 0.7, 0.2]
    objective, outputs = CausalLM(), {"logits": logits.astype("float32")}
    losses = objective.losses(labels, outputs)
    assert float(losses["causal_lm_loss"]) == pytest.approx(-np.log(probabilities).mean())
    scores = objective.scores(labels, outputs)
    total, count = scores["log_likelihood"]
    assert float(total) == pytest.approx(np.log(probabilities).sum(), rel=1e-6) and count == 3
    assert [float(x) for x in scores["accuracy"]] == [2, 3]
    outputs = {"log_probabilities": np.log([[0.5, 0.7], [0.2, 1.0]]).astype("float32")}
    again = objective.losses(labels, outputs)
    assert float(again["causal_lm_loss"]) == pytest.approx(-np.log(probabilities).mean())
    assert float(objective.scores(labels, outputs)["log_likelihood"][0]) == pytest.approx(total)
    # Two replicas' worth of weights: a row of weight 0 counts nothing.
    weighted = objective.losses(labels, outputs, np.array([1.0, 0.0]))
    assert float(weighted["causal_lm_loss"]) == pytest.approx(-np.log([0.5, 0.7]).mean())


@pytest.mark.parametrize("config", [GPT2, XL], ids=["gpt2", "transformer_xl"])
def test_predictions_see_what_is_before_them_alone(config, no_graphs):
    objective, model = CausalLM(), build_model(config, "causal_lm")
    trained = objective.trained(model)
    ids = np.random.default_rng(0).integers(2, 50, (2, 13))
    inputs, labels = rows(ids)
    outputs = trained(inputs)
    whole = model({k: inputs[k] for k in ("token_ids", "segment_ids", "padding_mask")})["logits"]
    log_probs = np.take_along_axis(tf.nn.log_softmax(whole).numpy(), labels[..., None], -1)
    # Of the labels alone as of all tokens.
    loss = objective.losses(labels, outputs)["causal_lm_loss"]
    assert float(loss) == pytest.approx(-log_probs.mean(), abs=1e-5)
    for place in (1, 6, 11):
        other = ids.copy()
        other[:, place] = (ids[:, place] + 7) % 48 + 2
        changed, _ = rows(other)
        # The same labels, so that it is the reading alone that differs.
        found = trained(changed | {"next_token_ids": labels})
        (name,) = outputs
        moved = np.any(np.array(found[name]) != np.array(outputs[name]), axis=0)
        moved = moved.any(-1) if moved.ndim == 2 else moved
        assert not moved[:place].any() and moved[place]


def test_a_memory_is_what_one_long_segment_sees(no_graphs):
    config = transformer_xl(memory_length=12)
    objective = CausalLM(memory=True)
    model = build_model(config, "causal_lm", memory=True)
    trained = objective.trained(model, batch_size=3)
    ids = np.random.default_rng(1).integers(2, 50, (3, 17))
    alone = CausalLM().trained(build_model(config, "causal_lm"))
    alone.set_weights(model.get_weights())
    whole = alone(rows(ids)[0])["log_probabilities"].numpy()
    for training in (True, False):
        found = [
            trained(rows(ids[:, 4 * i : 4 * i + 5], continues=i > 0)[0], training=training)
            for i in range(4)
        ]
        found = np.concatenate([f["log_probabilities"] for f in found], axis=1)
        np.testing.assert_allclose(found, whole, atol=1e-5)
    # With less memory the later segments differ.
    short = build_model(transformer_xl(memory_length=3), "causal_lm", memory=True)
    short.set_weights(model.get_weights())
    trained = objective.trained(short, batch_size=3)
    found = [trained(rows(ids[:, 4 * i : 4 * i + 5], i > 0)[0], training=True) for i in range(4)]
    found = np.concatenate([f["log_probabilities"] for f in found], axis=1)
    np.testing.assert_allclose(found[:, :4], whole[:, :4], atol=1e-5)
    assert np.abs(found[:, 4:] - whole[:, 4:]).max(0).min() > 1e-3


def test_bad_arguments_are_refused():
    CausalLM(memory=True).check(XL, Tokens())
    for objective, config, word in (
        (CausalLM(), BertConfig(), "'bert'"),
        (CausalLM(memory=True), GPT2, "memory=True"),
        (CausalLM(memory=True), transformer_xl(memory_length=None), "no memory"),
        (CausalLM(memory=True, packing="masked"), GPT2, "memory"),
        (CausalLM(packing="masked"), XL, "packing=masked"),
    ):
        with pytest.raises(InputError, match=word):
            objective.check(config, Tokens())


def test_documents_of_a_row_begin_with_the_end_token_before_them():
    tokenizer, corpus = Tokens(), numbered([3], [2], [4])
    whole = CausalLM(packing="masked").batches(corpus, tokenizer, 3, 4, shuffle=False)
    inputs, labels = next(whole.epoch())
    end = whole.end_token_id
    # The stream: 10 11 12 E, 13 14 E, 15 16 17 18 E.
    assert inputs["token_ids"].tolist() == [[10, 11, 12, end], [13, 14, end, 15], [16, 17, 18, 0]]
    assert inputs["positions"].tolist() == [[0, 1, 2, 0], [0, 1, 0, 1], [0, 1, 2, 0]]
    assert labels.tolist() == [[11, 12, end, 13], [14, end, 15, 16], [17, 18, end, -100]]
    joined = CausalLM().batches(corpus, tokenizer, 3, 4, shuffle=False)
    assert "positions" not in next(joined.epoch())[0]
    assert joined.fingerprint() != whole.fingerprint()
    # Without end tokens nothing tells the first token of a document.
    whole.end_token_id = None
    inputs, labels = whole.batch(whole.stream(0), np.arange(2), None)
    assert inputs["token_ids"].tolist() == [[10, 11, 12, 13], [14, 15, 16, 17]]
    assert inputs["positions"].tolist() == [[0, 1, 2, 0], [0, 0, 1, 2]]
    assert labels.tolist() == [[11, 12, -100, 14], [-100, 16, 17, 18]]
    # That of a row's last label neither: here a row ends with the document.
    whole.max_length = 3
    inputs, labels = whole.batch(whole.stream(0), np.arange(2), None)
    assert inputs["token_ids"].tolist() == [[10, 11, 12], [13, 14, 15]]
    assert inputs["positions"].tolist() == [[0, 1, 2], [0, 1, 0]]
    assert labels.tolist() == [[11, 12, -100], [14, -100, 16]]
    assert inputs["next_token_ids"].tolist() == labels.tolist()
