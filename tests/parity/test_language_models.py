"""The losses of language models against those of `transformers`, on the same weights."""

import numpy as np
import pytest

from tests.objectives.batches.test_token_stream import large_corpus
from tests.parity.test_families import reference
from tfnlp.checkpoints import load_model
from tfnlp.objectives import PermutationLM
from tfnlp.text.tokenizers.tokenizer_loading import train_tokenizer

torch = pytest.importorskip("torch", reason="parity needs .[parity]")


def as_tensors(**arrays):
    return {name: torch.tensor(x).long() for name, x in arrays.items()}


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
