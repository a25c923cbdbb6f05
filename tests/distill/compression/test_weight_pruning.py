"""Weights that go step by step: tfmot's masks, in training, on resuming and in the file."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from distill.compression.block_kernels import block_kernels
from distill.compression.compression_settings import PruningConfig
from distill.compression.structured_pruning import prune_structure
from distill.compression.vocabulary_pruning import prune_vocabulary
from distill.compression.weight_pruning import Pruner, sparsity
from distill.export.options import Export
from distill.export.tflite import export_tflite
from distill.runtime import TextClassifier
from tests.kills import KILLS, killed_after
from tests.training.experiments.test_finetuning import DEV, TRAIN, Scripted
from tfnlp.checkpoints import load_model
from tfnlp.models import build_model
from tfnlp.training import FineTuning, RunFolder, Splits, TrainingConfig
from tfnlp.training.run.fingerprints import content_fingerprint
from tfnlp.utils.errors import InputError

PATTERNS = ("magnitude", "2:4", "4x1", "2x4")


def numpy_mask(weights, share, pattern):
    """The mask of a kernel (inputs, outputs), from what the patterns mean."""
    sizes = np.abs(weights)
    if pattern == "2:4":
        fours = sizes.reshape(-1, 4, weights.shape[1])
        return (fours.argsort(1).argsort(1) >= 2).reshape(weights.shape)
    height, width = (1, 1) if pattern == "magnitude" else map(int, pattern.split("x"))
    blocks = sizes.reshape(weights.shape[0] // height, height, -1, width).mean((1, 3))
    kept = max(round(blocks.size * (1 - share)), 1)
    mask = blocks >= np.sort(blocks, None)[::-1][kept - 1]
    return mask.repeat(height, 0).repeat(width, 1)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_masks_are_those_of_the_schedule_and_of_the_magnitudes(one_layer, pattern):
    model = build_model(one_layer, "classifier", 2)
    config = PruningConfig(0.5, pattern, begin_step=1, end_step=9, frequency=4)
    pruner = Pruner(model, config, 12)
    kernels = block_kernels(model)
    rng = np.random.default_rng(0)
    masks = [np.ones(k.shape, bool) for k in kernels]
    for step in range(1, 12):
        for kernel in kernels:  # as an optimizer's step would, masked weights too
            kernel.assign(np.asarray(kernel) + rng.normal(0, 0.1, kernel.shape))
        weights = [np.asarray(kernel) for kernel in kernels]
        share = 0.5 * (1 - (1 - (step - 1) / 8) ** 3)  # Zhu & Gupta, eq. 1
        if step == 2 if pattern == "2:4" else step in (1, 5, 9):
            masks = [numpy_mask(w, share, pattern) for w in weights]
        pruner.after_step(tf.constant(step))
        for kernel, before, mask in zip(kernels, weights, masks, strict=True):
            np.testing.assert_array_equal(kernel, before * mask)
        assert pruner.complete(step) == (step >= (2 if pattern == "2:4" else 9))
    assert sparsity(model) == pytest.approx(0.5, abs=0.01)


def test_a_killed_pruning_ends_with_the_same_weights_and_zeros(
    one_layer, tokenizer, tmp_path, no_graphs
):
    def run(folder, stop_after=None):
        keras.utils.set_random_seed(0)
        task = Scripted([0.9, 0.5, 0.4] if stop_after is None else [])
        model = build_model(one_layer, "classifier", 2)
        config = TrainingConfig(epochs=3, batch_size=4, learning_rate=1e-2, checkpoint_steps=1)
        pruning = PruningConfig(0.6, end_step=4, frequency=2)
        options = {"config": config, "run": RunFolder(folder, {}), "compress": pruning.pruner}
        with killed_after(stop_after):
            figures = FineTuning(
                task, model, tokenizer, Splits(TRAIN, DEV, 16), **options
            ).run_all()
        return figures, model, task

    figures, whole, task = run(tmp_path / "whole")
    # Of 2 batches an epoch the second epoch's last is the last pruning; 0.9 was before it.
    assert figures["sparsity"] == pytest.approx(0.6, abs=1e-3)
    best = load_model(tmp_path / "whole" / "best", "classifier")
    assert sparsity(best) == figures["sparsity"]
    by_epoch = [logits for _, logits in task.calls[:3]]
    np.testing.assert_allclose(task.calls[3][1], by_epoch[1], atol=1e-5)
    assert figures["compressed_bytes"] < 4 * best.count_params()
    with pytest.raises(KILLS):
        run(tmp_path / "broken", stop_after=3)
    _, resumed, _ = run(tmp_path / "broken")
    for a, b in zip(whole.weights, resumed.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_block_that_does_not_divide_the_kernels_is_refused(one_layer):
    with pytest.raises(InputError, match="pattern=3x7"):
        PruningConfig(0.5, "3x7").pruner(build_model(one_layer), 10)
    assert PruningConfig(0.5, "2x4").pruner(build_model(one_layer), 10).masks


def test_more_epochs_of_a_finished_pruning_keep_its_end(one_layer, tmp_path):
    """Half of the new steps would be later, and zeros would grow back until then."""
    path = tmp_path / "run"
    folder = RunFolder(path, {"epochs": 4})
    assert folder.first_epochs(4) == 4
    folder.start()
    for epochs, done in ((6, 4), (9, 6)):
        folder.save_state({}, {}, {"epoch": done, "stopped": False}, {})
        folder = RunFolder(path, {"epochs": epochs})
        assert folder.first_epochs(epochs) == 4
        folder.start()
    assert RunFolder(path, {"epochs": 9}, overwrite=True).first_epochs(9) == 9
    # Without a folder that knows, the state tells one schedule from another.
    model, pruning = build_model(one_layer), PruningConfig(0.5)
    prints = {n: content_fingerprint(pruning.pruner(model, n).config) for n in (40, 41, 60)}
    assert prints[40] == prints[41] != prints[60]
    explicit = PruningConfig(0.5, end_step=20).pruner(model, 60)
    assert content_fingerprint(explicit.config) == prints[40]


def test_compressed_models_are_the_same_in_their_file(one_layer, tokenizer, tmp_path):
    model = build_model(one_layer, "classifier", 2)
    texts = ["a fine film", "the plot is dull", "영화 정말 좋다 !"]
    model, tokenizer = prune_vocabulary(model, tokenizer, texts)
    rng = np.random.default_rng(0)
    importance = {"encoder_0": {"heads": rng.random(4), "units": rng.random(64)}}
    model = prune_structure(model, importance, 3, 40)
    pruner = Pruner(model, PruningConfig(0.5, end_step=1), 2)
    pruner.after_step(tf.constant(1))
    path = tmp_path / "model.tflite"
    export_tflite(model, path, tokenizer, ["bad", "good"], Export("float32", 48))
    runner = Interpreter(str(path))
    details = runner.get_tensor_details()
    stored = []
    for tensor in details:
        with contextlib.suppress(ValueError):  # only constants have values yet
            stored.append(runner.get_tensor(tensor["index"]) == 0)
    for kernel in block_kernels(model):
        zeros = np.asarray(kernel).T == 0
        assert zeros.mean() == pytest.approx(0.5, abs=0.01)
        # The converter folds the scale of the scores into a kernel, but leaves its zeros.
        assert any(np.array_equal(zeros, tensor) for tensor in stored), kernel.path
    logits = np.asarray(model(tokenizer(texts))["logits"], "float64")
    expected = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    answers = TextClassifier(path).classify(texts)
    found = [[answer.probabilities[label] for label in ("bad", "good")] for answer in answers]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_schedules_that_do_not_fit_are_refused(one_layer):
    with pytest.raises(InputError, match="sparsity="):
        PruningConfig(1.5)
    for pattern in ("2:4", "4", "4x", "0x4"):
        with pytest.raises(InputError, match=f"pattern='{pattern}'"):
            PruningConfig(0.7, pattern)
    for options, words in (({"begin_step": 9}, "end_step=5"), ({"end_step": 11}, "10 steps")):
        with pytest.raises(InputError, match=words):
            PruningConfig(0.5, **options).steps(10)
    assert PruningConfig(0.5).steps(1000) == (0, 500, 25)
    assert PruningConfig(0.5, end_step=9, frequency=4).steps(10) == (0, 8, 4)
    assert PruningConfig(0.5, end_step=3, frequency=100).steps(10) == (0, 3, 3)
    assert sparsity(build_model(one_layer)) == 0
