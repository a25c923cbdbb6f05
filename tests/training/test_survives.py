"""What a pretraining survives: kills, bad batches, a full disk, a damaged shard, a second run."""

import dataclasses
import json
import resource
import subprocess
import sys
import textwrap
from typing import ClassVar

import keras
import numpy as np
import pytest
import safetensors
import tensorflow as tf
from keras import ops

from tests.kills import KILLS, killed_after
from tfnlp.corpora.corpus_preparation import CorpusSettings, prepare_corpus
from tfnlp.models import BertConfig, build_model
from tfnlp.objectives import (
    CausalLM,
    Corpus,
    MaskedLM,
    Objective,
    Segments,
    SpecialTokenTemplate,
    open_corpus,
)
from tfnlp.objectives.batch_provenance import batch_origin, read_documents
from tfnlp.text import LengthBatches
from tfnlp.training import RunFolder, TrainingConfig
from tfnlp.training.fixed_step_epochs import Rounds
from tfnlp.training.non_finite_steps import EXPLODES, LeavesOutBadSteps
from tfnlp.training.pretraining import Evaluator, pretrain
from tfnlp.training.run_folder import TIMES
from tfnlp.utils.errors import InputError
from tfnlp.weighted_losses import weighted_mean

CONFIG = TrainingConfig(epochs=2, batch_size=4, learning_rate=1e-2, checkpoint_steps=2)
# What a batch's padding mask is multiplied with, and the loss then.
NAN, HUGE = 3, 2


@dataclasses.dataclass(frozen=True)
class Copy(Objective):
    """The simplest objective: each token is predicted from itself."""

    head: ClassVar[str] = "masked_lm"
    loss_name: ClassVar[str] = "copy_loss"

    def trained(self, model):
        outputs = {"logits": model.output["logits"], "mask": model.input["padding_mask"]}
        return keras.Model(model.input, outputs)

    def losses(self, labels, outputs, sample_weight=None):
        kind = ops.max(outputs["mask"])
        factor = ops.where(kind == NAN, np.nan, ops.where(kind == HUGE, 1e4, 1.0))
        logits = outputs["logits"]
        values = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        return {"copy_loss": weighted_mean(factor * values, sample_weight)}

    def scores(self, labels, outputs):
        hits = ops.cast(ops.argmax(outputs["logits"], -1) == labels, "float32")
        return {"accuracy": (ops.sum(hits), ops.size(hits))}


class Batches(LengthBatches):
    """With some bad ones: {(epoch, number): kind}; an error is raised."""

    bad: ClassVar[dict] = {}

    def epoch(self, epoch=0, skip=0):
        for number, (inputs,) in enumerate(super().epoch(epoch, skip), skip):
            kind = self.bad.get((epoch, number), 1)
            if isinstance(kind, Exception):
                raise kind
            yield inputs | {"padding_mask": inputs["padding_mask"] * kind}, inputs["token_ids"]

    def signature(self):
        (inputs,) = super().signature()
        return inputs, inputs["token_ids"]


def make_batches(tokenizer, bad, shuffle=True):
    """26 documents of 6 tokens, in batches of 4."""
    rng = np.random.default_rng(0)
    corpus = Corpus.from_documents(
        [[rng.integers(5, tokenizer.vocabulary_size, 6)] for _ in range(26)]
    )
    batches = Batches(
        Segments.from_corpus(corpus, SpecialTokenTemplate.from_tokenizer(tokenizer), 8),
        4,
        shuffle=shuffle,
    )
    batches.bad = bad
    return batches


def train(folder, tokenizer, bad=None, config=CONFIG, stop_after=None, steps=None, **options):
    """The weights after a training of 7 steps an epoch, and the run's folder."""
    keras.utils.set_random_seed(0)
    model = build_model(
        BertConfig(
            vocabulary_size=tokenizer.vocabulary_size,
            num_layers=1,
            num_heads=2,
            hidden_dim=16,
            intermediate_dim=16,
            max_length=8,
        ),
        "masked_lm",
    )
    batches = make_batches(tokenizer, bad or {})
    dev = make_batches(tokenizer, {}, shuffle=False)
    run = RunFolder(folder, {"seed": 0})
    with killed_after(stop_after):
        pretrain(
            *(Copy(), {"model": model}, tokenizer, batches, dev, config, run),
            **(options | {"steps_per_epoch": steps}),
        )
    return model.get_weights(), run


@pytest.fixture(autouse=True)
def _no_graphs(no_graphs):
    """So few and small steps take less time than their graph."""


def progress_of(run):
    with safetensors.safe_open(run.state_path, "numpy") as file:
        return json.loads(file.metadata()["progress"])


def assert_same_weights(a, b):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tokenizer):
    tf.config.run_functions_eagerly(True)
    return train(tmp_path_factory.mktemp("whole") / "run", tokenizer)


@pytest.mark.parametrize("kind", [NAN, HUGE])
def test_a_bad_batch_stops_the_run_before_it_harms(kind, tmp_path, tokenizer, whole):
    said = {NAN: "the loss is not finite", HUGE: r"the loss is [\d.e+]+, of"}[kind]
    folder = tmp_path / "run"
    bad = {(1, 3): kind}
    documents = ", ".join(map(str, sorted(make_batches(tokenizer, {}).batch_indices(1)[3])))
    message = rf"^At step 4 of epoch 2 \(documents {documents}\) {said}.*on_nan=skip"
    for _ in range(2):  # the same command says so again, at once
        with pytest.raises(InputError, match=message):
            train(folder, tokenizer, bad)
    run = RunFolder(folder, {"seed": 0})
    assert progress_of(run)["step"] == 4
    with np.load(folder / "bad_batch.npz") as saved:
        expected = make_batches(tokenizer, {})
        inputs, labels = list(expected.epoch(1))[3]
        np.testing.assert_array_equal(saved["labels"], labels)
        np.testing.assert_array_equal(saved["token_ids"], inputs["token_ids"])
        assert saved["padding_mask"].max() == kind
    # Without that batch it ends as a run that skipped it from the start.
    resumed, run = train(folder, tokenizer, bad, on_nan="skip")
    skipped, _ = train(tmp_path / "skipped", tokenizer, bad, on_nan="skip")
    assert_same_weights(resumed, skipped)
    assert any((a != b).any() for a, b in zip(resumed, whole[0], strict=True))
    last = run.metrics()[-1]
    assert last["skipped_steps"] == 1 and last["loss"] < 10
    assert last["val_accuracy"] > 0.5


class Watched(LeavesOutBadSteps, keras.Model):
    """A model whose losses are given."""


def test_a_loss_below_the_limit_of_1_does_not_explode():
    """Near 0 a loss may grow by any factor."""
    model = Watched()
    model.compile(keras.optimizers.SGD())
    limit = float(EXPLODES)
    losses = [1e-4, 0.9 * limit, 1.1 * limit]
    watched = [float(model.watched(tf.constant(loss))) for loss in losses]
    np.testing.assert_allclose(watched, [1e-4, 0.9 * limit, np.nan], rtol=1e-6)


def test_too_many_bad_batches_in_a_row_are_no_matter_of_the_data(tmp_path, tokenizer):
    bad = {(e, n): NAN for e in range(3) for n in range(7)}
    config = dataclasses.replace(CONFIG, epochs=3)
    with pytest.raises(InputError, match=r"^At step 3 of epoch 2 .* 10 batches in a row"):
        train(tmp_path / "run", tokenizer, bad, config, on_nan="skip")


def test_an_error_on_dev_loses_no_step(tmp_path, tokenizer, whole, monkeypatch):
    monkeypatch.setattr(Evaluator, "__call__", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train(tmp_path / "run", tokenizer)
    progress = progress_of(RunFolder(tmp_path / "run", {"seed": 0}))
    assert (progress["epoch"], progress["step"]) == (0, 7)
    monkeypatch.undo()
    resumed, run = train(tmp_path / "run", tokenizer)
    assert_same_weights(resumed, whole[0])
    for found, expected in zip(run.metrics(), whole[1].metrics(), strict=True):
        times = dict.fromkeys(TIMES, 0)
        assert found | times == expected | times


def test_dev_without_a_token_to_score_is_refused_before_the_first_step(tokenizer, tmp_path):
    """Unknown tokens are never masked."""
    objective = MaskedLM()
    unknown = Corpus.from_documents([[[tokenizer.unknown_token_id] * 6]] * 5)
    known = Corpus.from_documents([[[5, 6, 7, 8, 9, 10]]] * 4)
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 16}
    config = BertConfig(tokenizer.vocabulary_size, max_length=8, **sizes)
    models = {"model": build_model(config, "masked_lm")}
    run = RunFolder(tmp_path / "run", {})
    batches, dev = (objective.batches(c, tokenizer, 4, 8) for c in (known, unknown))
    with pytest.raises(InputError, match=r"^`dev` has no token to score, such as one that could"):
        pretrain(objective, models, tokenizer, batches, dev, CONFIG, run)
    assert not run.path.exists()


def test_an_error_of_the_data_is_one_sentence(tmp_path, tokenizer, whole):
    error = InputError("shard-3 is cut short at byte 17; copy it again.")
    with pytest.raises(InputError, match=r"^shard-3 is cut short at byte 17; copy it again\.$"):
        train(tmp_path / "run", tokenizer, {(1, 4): error})
    resumed, _ = train(tmp_path / "run", tokenizer)  # the shard was mended
    assert_same_weights(resumed, whole[0])


def test_a_kill_within_epochs_of_a_number_of_steps(tmp_path, tokenizer, whole):
    """Two epochs of 7 steps are fourteen, or three of 5 less one, whatever a pass has."""
    config = dataclasses.replace(CONFIG, epochs=3)
    rounds, run = train(tmp_path / "whole", tokenizer, config=config, steps=5)
    assert len(run.metrics()) == 3
    with pytest.raises(KILLS):
        train(tmp_path / "broken", tokenizer, config=config, steps=5, stop_after=9)
    resumed, _ = train(tmp_path / "broken", tokenizer, config=config, steps=5)
    assert_same_weights(rounds, resumed)
    batches = make_batches(tokenizer, {})
    passes = [labels for e in range(3) for _, labels in batches.epoch(e)]
    found = [labels for e in range(3) for _, labels in Rounds(batches, 5).epoch(e)]
    assert len(found) == 15
    for a, b in zip(passes, found, strict=False):
        np.testing.assert_array_equal(a, b)
    (last,) = [labels for _, labels in Rounds(batches, 5).epoch(2, 4)]
    np.testing.assert_array_equal(last, passes[14])


def test_a_full_disk_leaves_the_state_before(tmp_path, tokenizer, whole):
    with pytest.raises(KILLS):
        train(tmp_path / "run", tokenizer, stop_after=9)
    run = RunFolder(tmp_path / "run", {"seed": 0})
    before = run.state_path.read_bytes()
    best = (run.best / "model.safetensors").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with pytest.raises(InputError, match=r"^\S*state.safetensors could not be written \(.*\)"):
            train(tmp_path / "run", tokenizer)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert run.state_path.read_bytes() == before
    assert (run.best / "model.safetensors").read_bytes() == best
    resumed, _ = train(tmp_path / "run", tokenizer)
    assert_same_weights(resumed, whole[0])
    assert not list(run.path.glob(".state*"))


def test_a_second_run_in_a_folder_is_refused(tmp_path):
    """Also by a process of its own, which frees the folder when it is killed."""
    RunFolder(tmp_path / "run", {"seed": 0}).start()
    first, second = (RunFolder(tmp_path / "run", {"seed": 0}) for _ in range(2))
    said = r"run is in use by another run; wait until it ends, or give another folder\.$"
    with first.alone():
        with pytest.raises(InputError, match=said), second.alone():
            pass
        with pytest.raises(InputError, match=said):
            RunFolder(tmp_path / "run", {"seed": 0}, overwrite=True)
    with second.alone():
        pass
    program = """
        import fcntl, sys, time
        file = open(sys.argv[1], "w")
        fcntl.flock(file, fcntl.LOCK_EX)
        print("locked", flush=True)
        time.sleep(60)
    """
    lock = str(tmp_path / "run" / ".lock")
    command = [sys.executable, "-c", textwrap.dedent(program), lock]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(InputError, match=said):
            RunFolder(tmp_path / "run", {"seed": 0})
        process.kill()
    RunFolder(tmp_path / "run", {"seed": 0}, overwrite=True).start()
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [".lock", "flags.json"]


def test_two_fresh_runs_cannot_both_begin(tmp_path):
    first, second = (RunFolder(tmp_path / "run", {}) for _ in range(2))
    with first.alone():
        first.start()
        with pytest.raises(InputError, match="is in use by another run"), second.alone():
            pass


def test_a_run_does_not_go_on_from_another_that_came_in_between(tmp_path):
    """Both found an empty folder, and the second was through before the first began."""
    first, second = (RunFolder(tmp_path / "run", {"learning_rate": x}) for x in (0.1, 0.2))
    with second.alone():
        second.start()
        second.save_state({}, {}, {"epoch": 1}, {})
        assert second.load_state({}, {}) == ({"epoch": 1}, {})
    message = "holds another run: there `learning_rate` is 0.2, here 0.1"
    with first.alone(), pytest.raises(InputError, match=message):
        first.load_state({}, {})
    with pytest.raises(InputError, match="holds a run of another recipe, or of an older one: "):
        RunFolder(tmp_path / "run", {"learning_rate": 0.2, "beams": 4})


def test_what_a_batch_was_made_from(tokenizer, tmp_path):
    """Whatever an objective reads, also documents of other lanes, and shards by their names."""
    rng = np.random.default_rng(0)
    words = [t for t in tokenizer.vocabulary if t.isalpha()]
    texts = [" ".join(rng.choice(words, 6)) for _ in range(24)]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    folder = tmp_path / "corpus"
    prepare_corpus([tmp_path / "texts.txt"], tokenizer, folder, CorpusSettings("lines"))
    corpus = open_corpus(folder, tokenizer)
    batches = MaskedLM().batches(corpus, tokenizer, 4, 16)
    read = read_documents(batches, 1, 2)
    assert read == sorted(batches.encodings.documents[batches.batch_indices(1)[2]])
    (shard,) = folder.glob("*.tfrecord")
    said = f"documents {', '.join(map(str, read))} of {shard}"
    assert batch_origin(batches, 1, 2) == said
    lanes = CausalLM(memory=True).batches(corpus, tokenizer, 2, 8)
    stream = lanes.stream(0)
    first = {int(stream.order[0]), int(stream.order[1])}
    assert first <= set(read_documents(lanes, 0, 0))
    assert len(read_documents(lanes, 0, 0)) < 8
