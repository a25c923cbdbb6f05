"""Kernels of a few values: as many as asked for, before, in and after training."""

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

from distill.compression.block_kernels import block_kernels
from distill.compression.compression_settings import ClusteringConfig
from distill.compression.weight_clustering import Clusterer, cluster_weights
from distill.learning import Distillation, Teacher, make_student
from tests.training.experiments.test_finetuning import DEV, TRAIN
from tfnlp.checkpoints import load_model
from tfnlp.models import build_model
from tfnlp.tasks import Classification
from tfnlp.training import RunFolder, Splits, TrainingConfig
from tfnlp.utils.errors import InputError


def test_weights_go_to_the_nearest_of_so_many_centroids_and_stay_together(one_layer):
    model = build_model(one_layer, "classifier", 2)
    before = [np.asarray(kernel) for kernel in block_kernels(model)]
    clusterer = Clusterer(model, ClusteringConfig(8))
    rng = np.random.default_rng(0)
    for kernel, old in zip(block_kernels(model), before, strict=True):
        values = np.unique(kernel)
        assert len(values) == 8
        nearest = np.abs(old[..., None] - values).argmin(-1)
        np.testing.assert_array_equal(kernel, values[nearest])
    moved, expected = [], []
    for kernel in block_kernels(model):
        old = np.asarray(kernel)
        new = old + rng.normal(0, 0.1, old.shape).astype("float32")
        mean = np.zeros_like(new)
        for value in np.unique(old):
            mean[old == value] = new[old == value].mean()
        kernel.assign(new)
        moved.append(kernel)
        expected.append(mean)
    clusterer.after_step(tf.constant(1))
    for kernel, mean in zip(moved, expected, strict=True):
        np.testing.assert_allclose(kernel, mean, atol=1e-5)
        assert np.unique(kernel).size <= 8
    assert clusterer.complete(0)
    first = next(iter(block_kernels(model)))
    first.assign(np.zeros(first.shape))
    assert clusterer.figures(model) == {"distinct_values": 8}  # of the kernel with the most


def test_centroids_are_nearly_the_best():
    """Also beside a weight far from all others; the bounds are Max's quantisers of a Gaussian."""
    weights = np.random.default_rng(0).normal(size=(384, 256)).astype("float32")
    for count, bound in ((4, 0.1175), (16, 0.01154), (256, 6e-5)):
        centroids, nearest = cluster_weights(weights, count)
        assert len(centroids) == len(np.unique(nearest)) == count
        assert np.mean((centroids[nearest] - weights) ** 2) < 1.02 * bound
    weights[0, 0] = 1000
    centroids, nearest = cluster_weights(weights, 16)
    assert centroids[-1] == 1000 and np.mean((centroids[nearest] - weights) ** 2) < 0.015
    for few in ([[0.0, 0.0]], [[1.0, 2.0], [2.0, 3.0]]):
        centroids, nearest = cluster_weights(np.array(few, "float32"), 16)
        np.testing.assert_array_equal(centroids[nearest], few)


def test_weights_of_a_cluster_take_the_step_of_their_centroid(one_layer):
    model = build_model(one_layer, "classifier", 2)
    clusterer = Clusterer(model, ClusteringConfig(8))
    rng = np.random.default_rng(0)
    variables = model.trainable_weights
    gradients = [rng.normal(size=v.shape).astype("float32") for v in variables]
    shared = clusterer.before_step([tf.constant(g) for g in gradients], variables)
    kernels = {kernel.path for kernel in block_kernels(model)}
    for variable, gradient, result in zip(variables, gradients, shared, strict=True):
        if variable.path not in kernels:
            np.testing.assert_array_equal(result, gradient)
            continue
        weights, total = np.asarray(variable), 0.0
        for value in np.unique(weights):
            members = weights == value
            centroid = gradient[members].sum()
            expected = centroid / np.sqrt(members.sum())
            np.testing.assert_allclose(np.asarray(result)[members], expected, rtol=2e-4, atol=1e-5)
            total += centroid**2
        np.testing.assert_allclose(np.sum(np.square(result)), total, rtol=1e-3)


def test_a_distilled_student_has_so_many_values(one_layer, tokenizer, tmp_path, no_graphs):
    teacher = build_model(one_layer, "classifier", 2)
    student = make_student(teacher, 1, hidden_dim=16)
    config = TrainingConfig(epochs=1, batch_size=4, learning_rate=1e-2, checkpoint_steps=1)
    run = RunFolder(tmp_path / "run", {})
    start = student.get_weights()
    task = Classification(["bad", "good"])
    figures = Distillation(
        task,
        student,
        tokenizer,
        data=Splits(TRAIN, DEV, 16),
        config=config,
        run=run,
        compress=ClusteringConfig(16).clusterer,
        teacher=Teacher([teacher], tokenizer, task),
    ).run_all()
    assert figures["distinct_values"] == 16
    best = load_model(run.best, "classifier")
    assert [np.unique(kernel).size for kernel in block_kernels(best)] == [16] * 6
    moved = [np.abs(a - b).max() for a, b in zip(start, best.get_weights(), strict=True)]
    assert min(moved) > 1e-4
    # 4 bits a weight in the kernels, whatever the rest takes.
    dense = sum(np.asarray(w).nbytes for w in block_kernels(best))
    assert figures["compressed_bytes"] < 4 * best.count_params() - dense / 2
    # A killed run goes on with the same clusters.
    state = safetensors.numpy.load_file(run.state_path)
    kernels = {kernel.path: np.asarray(kernel) for kernel in block_kernels(student)}
    for i, kernel in enumerate(kernels.values()):
        clusters = state["variable/clusterer/clusters" + (f"#{i}" if i else "")]
        assert clusters.dtype == "int32"
        for cluster in range(16):
            assert np.unique(kernel[clusters == cluster]).size <= 1


def test_numbers_of_clusters_that_do_not_fit_are_refused():
    for clusters, bound in ((1, "least 2"), (257, "most 256")):
        with pytest.raises(InputError, match=f"clusters={clusters} must be at {bound}"):
            ClusteringConfig(clusters)
