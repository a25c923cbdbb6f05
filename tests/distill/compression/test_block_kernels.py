"""The kernels to compress are those of blocks, on one device."""

import types

import keras
import pytest
import tensorflow as tf

from distill.compression.block_kernels import block_kernels, kernels_to_compress
from distill.compression.compression_settings import ClusteringConfig, PruningConfig
from tfnlp.models import build_model
from tfnlp.utils.errors import InputError


def test_tables_and_heads_are_left_out(one_layer):
    model = build_model(one_layer, "classifier", 2)
    assert sorted(kernel.path for kernel in block_kernels(model)) == [
        *(f"encoder_0/attention/{part}/kernel" for part in ("key", "output", "query", "value")),
        *(f"encoder_0/feed_forward/{part}/kernel" for part in ("intermediate", "output")),
    ]


def test_several_replicas_are_refused(one_layer, monkeypatch):
    model = build_model(one_layer)
    several = types.SimpleNamespace(num_replicas_in_sync=2)
    monkeypatch.setattr(tf.distribute, "get_strategy", lambda: several)
    for make in (PruningConfig(0.5).pruner, ClusteringConfig(4).clusterer):
        with pytest.raises(InputError, match="the strategy has 2 replicas; use strategy='one_d"):
            make(model, 10)


def test_a_model_without_blocks_is_refused():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    with pytest.raises(InputError, match="no blocks of dense kernels to prune"):
        kernels_to_compress(model, "prune")
