"""The losses of language models against those of `transformers`, on the same weights."""

import numpy as np
import pytest

from tests.objectives.batches.test_token_stream import Tokens, large_corpus
from tests.parity.test_families import reference
from tests.parity.test_transformer_xl import RECORDED, write_folder
from tfnlp.checkpoints import load_model
from tfnlp.objectives import CausalLM, PermutationLM
from tfnlp.objectives.batches.lane_memory import lane_inputs
from tfnlp.text.tokenizers.tokenizer_loading import train_tokenizer

torch = pytest.importorskip("torch", reason="parity needs .[parity]")


def as_tensors(**arrays):
    return {name: torch.tensor(x).long() for name, x in arrays.items()}


@pytest.mark.parametrize("name", ["gpt", "gpt2"])
def test_the_causal_loss(name, tmp_path):
    theirs = reference(tmp_path, name, "LMHeadModel")
    objective = CausalLM()
    trained = objective.trained(load_model(tmp_path, "causal_lm"))
    batches = objective.batches(large_corpus(), Tokens(), 3, 9, seed=1)
    for inputs, labels in list(batches.epoch())[:2]:
        found = objective.losses(labels, trained(inputs))["causal_lm_loss"]
        # Theirs are shifted by the model: a row's tokens, and the one after.
        ids = np.concatenate([inputs["token_ids"], labels[:, -1:]], axis=1)
        whole = np.concatenate([np.full_like(labels[:, :1], -100), labels], axis=1)
        given = as_tensors(input_ids=np.maximum(ids, 0), labels=whole)
        with torch.no_grad():
            expected = float(theirs(**given).loss)
        assert float(found) == pytest.approx(expected, abs=1e-5 * max(1, expected))


@pytest.mark.parametrize("case", ["adaptive", "own_projections", "plain"])
def test_the_causal_loss_with_a_memory(case, tmp_path):
    """Against the recorded losses of transformers 4.35, whose memory begins as zeros."""
    from tests.parity.record_transformer_xl_model import segments

    write_folder(tmp_path, case)
    objective = CausalLM(memory=True)
    trained = objective.trained(load_model(tmp_path, "causal_lm", memory=True), batch_size=2)
    lanes = trained.training_memory
    for number, ids in enumerate(segments(case)):
        lanes.states.assign(0 * lanes.states)
        lanes.filled.assign([lanes.memory_length] * 2)
        ids = ids.astype("int32")
        labels = np.concatenate([ids[:, 1:], np.full_like(ids[:, :1], -100)], axis=1)
        inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
        inputs |= {"next_token_ids": labels, **lane_inputs(2, True)}
        found = objective.losses(labels, trained(inputs, training=True))["causal_lm_loss"]
        expected = float(RECORDED[f"{case}/{number}/losses"].mean())
        assert float(found) == pytest.approx(expected, abs=1e-5 * max(1, expected))


def test_the_permutation_loss(tmp_path):
    theirs = reference(tmp_path, "xlnet", "LMHeadModel", mem_len=10, reuse_len=8)
    model = load_model(tmp_path, "permutation_lm", memory=True)
    tokens = train_tokenizer(["a cat sat on the mat", "the dog ran"] * 20, "unigram", 60, "xlnet")
    objective = PermutationLM(reuse_length=8, predict_one_in=3, max_span=2)
    objective.check(model.text_config, tokens[0])
    trained = objective.trained(model, batch_size=4)
    batches = objective.batches(large_corpus(documents=30, lowest=7), tokens[0], 4, 21, seed=2)
    memory = None
    for inputs, labels in list(batches.epoch())[:3]:
        found = objective.losses(labels, trained(inputs, training=True))["permutation_lm_loss"]
        order, targets = inputs["permutation_order"], inputs["target_positions"]
        # What may not be seen: what is later in the order, and of a target its own content.
        hidden = order[:, None, :] > order[:, :, None]
        hidden |= np.eye(21, dtype=bool) & (np.eye(21)[targets].sum(1) > 0)[:, :, None]
        given = as_tensors(
            input_ids=inputs["token_ids"], token_type_ids=inputs["segment_ids"], labels=labels
        )
        with torch.no_grad():
            expected = theirs(
                **given,
                perm_mask=torch.tensor(hidden).float(),
                target_mapping=torch.tensor(np.eye(21)[targets]).float(),
                mems=memory,
                use_mems=True,
            )
        memory = expected.mems
        loss = float(expected.loss)
        assert float(found) == pytest.approx(loss, abs=1e-5 * max(1, loss))
