"""What a pretraining survives: kills, bad batches, a damaged shard."""

import dataclasses
import types
from typing import ClassVar

import keras
import numpy as np
import pytest
from keras import ops

from tests.kills import KILLS, assert_same_weights, killed_after
from tfnlp.functional.weighted_losses import weighted_mean
from tfnlp.models import BertConfig, build_model
from tfnlp.objectives import Corpus, MaskedLM, Objective, Segments, SpecialTokenTemplate
from tfnlp.text import LengthBatches
from tfnlp.training import PretrainingConfig, RunFolder, Splits
from tfnlp.training.experiments.pretraining import FixedStepEpochs, Pretraining
from tfnlp.utils.errors import InputError

# Graphs of so few and small steps take longer than they.
pytestmark = pytest.mark.usefixtures("no_graphs")
CONFIG = PretrainingConfig(epochs=2, batch_size=4, learning_rate=1e-2, checkpoint_steps=2)
# What a batch's padding mask is multiplied with, and the loss then.
NAN, HUGE = 3, 2


@dataclasses.dataclass(frozen=True)
class Copy(Objective):
    """The simplest objective: each token is predicted from itself."""

    head: ClassVar[str] = "masked_lm"
    loss_name: ClassVar[str] = "copy_loss"

    def batches(self, corpus, tokenizer, batch_size, max_length, seed=0, shuffle=True):
        template = SpecialTokenTemplate.from_tokenizer(tokenizer)
        segments = Segments.from_corpus(corpus.documents, template, max_length)
        batches = Batches(segments, batch_size, shuffle=shuffle, seed=seed)
        batches.bad = corpus.bad
        return batches

    def trained(self, model):
        outputs = {"logits": model.output["logits"], "mask": model.input["padding_mask"]}
        return keras.Model(model.input, outputs)

    def losses(self, labels, outputs, sample_weight=None):
        kind = ops.max(outputs["mask"])
        factor = ops.where(kind == NAN, np.nan, ops.where(kind == HUGE, 1e4, 1.0))
        logits = outputs["logits"]
        values = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        return {"copy_loss": weighted_mean(factor * values, sample_weight)}


class Batches(LengthBatches):
    """With some bad ones: {(epoch, number): kind}; an error is raised."""

    bad: ClassVar[dict] = {}

    def make(self, plan, epoch, number):
        (inputs,) = super().make(plan, epoch, number)
        kind = self.bad.get((epoch, number), 1)
        if isinstance(kind, Exception):
            raise kind
        return inputs | {"padding_mask": inputs["padding_mask"] * kind}, inputs["token_ids"]

    def signature(self):
        (inputs,) = super().signature()
        return inputs, inputs["token_ids"]


def make_corpus(tokenizer, bad):
    """26 documents of 6 tokens, of which some batches are bad."""
    rng = np.random.default_rng(0)
    documents = [[rng.integers(5, tokenizer.vocabulary_size, 6)] for _ in range(26)]
    return types.SimpleNamespace(documents=Corpus.from_documents(documents), bad=bad)


def make_batches(tokenizer, bad):
    """The corpus in batches of 4."""
    return Copy().batches(make_corpus(tokenizer, bad), tokenizer, 4, 8)


def small_model(tokenizer):
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 16}
    config = BertConfig(tokenizer.vocabulary_size, max_length=8, **sizes)
    return build_model(config, "masked_lm")


def train(folder, tokenizer, bad=None, config=CONFIG, stop_after=None):
    """The weights after a training of 7 steps an epoch, and the run's folder."""
    keras.utils.set_random_seed(0)
    data = Splits(make_corpus(tokenizer, bad or {}), make_corpus(tokenizer, {}), max_length=8)
    model, run = small_model(tokenizer), RunFolder(folder, {"seed": 0})
    with killed_after(stop_after):
        Pretraining(Copy(), {"model": model}, tokenizer, data, config=config, run=run).run_all()
    return model.get_weights(), run


def test_dev_without_a_token_to_score_is_refused_before_the_first_step(tokenizer, tmp_path):
    """Unknown tokens are never masked."""
    unknown = Corpus.from_documents([[[tokenizer.unknown_token_id] * 6]] * 5)
    data = Splits(Corpus.from_documents([[[5, 6, 7, 8, 9, 10]]] * 4), unknown, 8)
    models, run = {"model": small_model(tokenizer)}, RunFolder(tmp_path / "run", {})
    with pytest.raises(InputError, match="`dev` has no token to score"):
        Pretraining(MaskedLM(), models, tokenizer, data, config=CONFIG, run=run).run_all()
    assert not run.path.exists()


def test_an_error_of_the_data_is_one_sentence(tmp_path, tokenizer):
    error = InputError("shard-3 is cut short at byte 17; copy it again.")
    with pytest.raises(InputError, match=r"^shard-3 is cut short at byte 17; copy it again\.$"):
        train(tmp_path / "run", tokenizer, {(1, 4): error})
    resumed, _ = train(tmp_path / "run", tokenizer)  # the shard was mended
    assert_same_weights(resumed, train(tmp_path / "whole", tokenizer)[0])


def test_a_kill_within_epochs_of_a_number_of_steps(tmp_path, tokenizer):
    """Two epochs of 7 steps are fourteen, or three of 5 less one, whatever a pass has."""
    config = dataclasses.replace(CONFIG, epochs=3, steps_per_epoch=5)
    rounds, run = train(tmp_path / "whole", tokenizer, config=config)
    assert len(run.metrics()) == 3
    with pytest.raises(KILLS):
        train(tmp_path / "broken", tokenizer, config=config, stop_after=9)
    resumed, _ = train(tmp_path / "broken", tokenizer, config=config)
    assert_same_weights(rounds, resumed)
    batches = make_batches(tokenizer, {})
    passes = [labels for e in range(3) for _, labels in batches.epoch(e)]
    found = [labels for e in range(3) for _, labels in FixedStepEpochs(batches, 5).epoch(e)]
    assert len(found) == 15
    for a, b in zip(passes, found, strict=False):
        np.testing.assert_array_equal(a, b)
    (last,) = [labels for _, labels in FixedStepEpochs(batches, 5).epoch(2, 4)]
    np.testing.assert_array_equal(last, passes[14])
