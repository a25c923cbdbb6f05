"""Pretraining for an objective: losses, scores and folders, on one device and on two."""

import numpy as np
import pytest

from tests.kills import assert_same_weights
from tests.training.pretrain_runs import OBJECTIVES, TOKENS, small_config
from tests.training.pretrain_runs import make_corpus as pretrain_corpus
from tfnlp.checkpoints import (
    load_model,
    read_config,
    read_head,
    read_pooler,
    read_task_settings,
    save_model,
)
from tfnlp.models import BertConfig, ElectraConfig, build_model
from tfnlp.objectives import Corpus, MaskedLM, ReplacedTokens
from tfnlp.text import WordPieceTokenizer
from tfnlp.training import PretrainingConfig, RunFolder, Splits, start_models
from tfnlp.training.experiments.pretraining import FixedStepEpochs, Pretraining
from tfnlp.utils.errors import InputError

LENGTH = 12


def small(tokenizer):
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "embedding_dim": 16}
    sizes |= {"intermediate_dim": 32, "max_length": LENGTH}
    return ElectraConfig(vocabulary_size=tokenizer.vocabulary_size, **sizes)


def make_corpus(tokenizer, documents=26, seed=0):
    rng = np.random.default_rng(seed)
    lengths, size = rng.integers(2, 9, documents), tokenizer.vocabulary_size
    return Corpus.from_documents([[rng.integers(5, size, length)] for length in lengths])


def test_trains_logs_each_loss_and_saves_each_model(tmp_path, tokenizer):
    config = PretrainingConfig(epochs=6, batch_size=4, learning_rate=3e-3)
    objective = ReplacedTokens(generator_size=0.5)
    models = objective.build(small(tokenizer))
    size = (tokenizer, config.batch_size, LENGTH)
    corpora = make_corpus(tokenizer), make_corpus(tokenizer, 10, 1)
    dev = objective.batches(corpora[1], *size, shuffle=False)
    run = RunFolder(tmp_path / "run", {"seed": 0})
    data = Splits(*corpora, max_length=LENGTH, further_dev={"seen": corpora[0]})
    figures = Pretraining(objective, models, tokenizer, data, config=config, run=run).run_all()
    metrics = run.metrics()
    for m in metrics:
        for part in ("", "val_"):
            due = m[f"{part}generator_loss"] + 50 * m[f"{part}discriminator_loss"]
            assert m[f"{part}loss"] == pytest.approx(due, rel=1e-5)
    assert metrics[-1]["loss"] < 0.8 * metrics[0]["loss"]
    assert figures["val_seen/loss"] == metrics[-1]["val_seen/loss"] != metrics[-1]["val_loss"]
    assert figures["steps"] == 6 * 7 and figures["texts"] == 26
    for name, folder in (("discriminator", run.best), ("generator", run.path / "generator")):
        loaded = load_model(folder, models[name].head)
        assert_same_weights(models[name].get_weights(), loaded.get_weights())
    # What dev says is what the models say, over all of its tokens, whatever batch they are in.
    trained, sums = objective.trained(models), np.zeros((3, 2))
    for inputs, labels in dev.epoch():
        outputs = {name: x.numpy().astype("float64") for name, x in trained(inputs).items()}
        there, real = inputs["padding_mask"] > 0, labels >= 0
        replaced, logits = outputs["replaced"] > 0, outputs["logits"]
        entropies = np.log1p(np.exp(np.where(replaced, -logits, logits)))
        shares = np.exp(outputs["generator_logits"])
        shares /= shares.sum(-1, keepdims=True)
        found = np.take_along_axis(shares, np.maximum(labels, 0)[..., None], -1)[..., 0]
        sums += [
            [((logits > 0) == replaced)[there].sum(), there.sum()],
            [entropies[there].sum(), there.sum()],
            [-np.log(found[real]).sum(), real.sum()],
        ]
    names = ("accuracy", "discriminator_loss", "generator_loss")
    for name, (total, count) in zip(names, sums, strict=True):
        assert metrics[-1][f"val_{name}"] == pytest.approx(total / count, rel=1e-5), name


def test_a_pooler_is_kept_as_it_came(tmp_path, tokenizer, no_graphs):
    """Of what began with one, by masked language modelling, which trains none; twice."""
    sizes = {"num_layers": 1, "hidden_dim": 16, "num_heads": 2, "max_length": LENGTH + 2}
    config = BertConfig(tokenizer.vocabulary_size, **sizes)
    first, second = tmp_path / "0", tmp_path / "1/best"
    save_model(build_model(config), first)
    pooler = read_pooler(first)
    assert len(pooler) == 2
    training = PretrainingConfig(epochs=1, batch_size=8, learning_rate=1e-2)
    for number, start in enumerate((first, second), 1):
        models = start_models(MaskedLM(), read_config(start), start)
        data = Splits(make_corpus(tokenizer), None, LENGTH)
        run = RunFolder(tmp_path / str(number), {})
        kept = {"task_settings": {"max_length": LENGTH}, "pooler": read_pooler(start)}
        Pretraining(MaskedLM(), models, tokenizer, data, training, run, **kept).run_all()
    assert read_head(run.best) == "masked_lm" and read_pooler(run.best).keys() == pooler.keys()
    for name, value in read_pooler(run.best).items():
        np.testing.assert_array_equal(value, pooler[name])
    weights = [{w.path: w.numpy() for w in load_model(f).weights} for f in (first, run.best)]
    changed = {path for path in weights[0] if (weights[0][path] != weights[1][path]).any()}
    assert changed and {path.split("/")[0] for path in weights[0]} >= {"embeddings"}
    assert not any(path.startswith("pooler") for path in changed)
    assert read_task_settings(run.best) == {"max_length": LENGTH}
    # A classifier begins with it.
    models = load_model(run.best, "classifier", 2), load_model(first)
    np.testing.assert_array_equal(*(m.get_layer("pooler").kernel for m in models))


def test_two_models_go_on_from_their_folders(tmp_path, tokenizer):
    config = small(tokenizer)
    objective = ReplacedTokens()
    models = objective.build(config)
    for name, model in models.items():
        save_model(model, tmp_path / name)
    discriminator, generator = (tmp_path / name for name in models)
    read = read_config(discriminator)
    same = start_models(objective, read, discriminator, generator)
    other = start_models(objective, read, discriminator)
    inputs = {"token_ids": np.arange(5, 5 + LENGTH)[None] % tokenizer.vocabulary_size}
    inputs |= {"segment_ids": 0 * inputs["token_ids"]}
    inputs |= {"padding_mask": inputs["segment_ids"] + 1}

    def says(models, name):
        return models[name](inputs)["logits"].numpy()

    for name in models:
        np.testing.assert_allclose(says(same, name), says(models, name), atol=1e-6)
    for name, equal in (("discriminator", True), ("generator", False)):
        assert np.allclose(says(other, name), says(models, name), atol=1e-6) == equal
    # One of another training is refused.
    save_model(objective.build(config)["generator"], tmp_path / "stranger")
    with pytest.raises(InputError, match="they were not trained together; give the generator"):
        start_models(objective, read, discriminator, tmp_path / "stranger")


def test_lanes_are_not_read_in_parts(tmp_path):
    objective, family, fields = OBJECTIVES["causal_lm"]
    tokenizer = WordPieceTokenizer(TOKENS)
    models = start_models(objective, small_config(family, fields))
    data, run = Splits(pretrain_corpus(), None, 14), RunFolder(tmp_path, {})
    config = PretrainingConfig(batch_size=4, accumulation_steps=2)
    with pytest.raises(InputError, match="accumulation_steps=2 does not go with a memory"):
        Pretraining(objective, models, tokenizer, data, config=config, run=run).run_all()


def test_epochs_of_so_many_steps_go_on_through_the_passes():
    class Passes:
        """Three batches a pass: each is (what the pass was planned as, its number)."""

        lengths, plan = None, staticmethod(lambda number: f"pass {number}")
        fingerprint = staticmethod(lambda: "same")

        def __len__(self):
            return 3

        def make(self, plan, epoch, number):
            return plan, epoch, number

    batches = FixedStepEpochs(Passes(), 4)
    made = [batches.make(batches.plan(0), epoch, i) for epoch in (0, 1) for i in range(4)]
    assert made == [(f"pass {i // 3}", i // 3, i % 3) for i in range(8)]
    assert len(batches) == 4
    assert batches.fingerprint() != FixedStepEpochs(Passes(), 5).fingerprint()
