"""Learning rates by layer, in every family."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.training.step.test_optimizer import MORE_FIELDS, SIZES, UNDECAYED
from tfnlp import models
from tfnlp.objectives import ReplacedTokens
from tfnlp.training.experiments.pretraining import Pretrainer
from tfnlp.training.step.layer_wise_rates import layer_depths
from tfnlp.training.step.optimizer import is_decayed, make_optimizer
from tfnlp.utils.errors import InputError

# Of two blocks: how far from the top what is no block is, by the first part of its path.
DEPTHS = {"embeddings": 3, "relative_positions": 3, "convolution": 2}


HEADS = {
    "BertConfig": {"lm_transform", "lm_norm", "lm_bias"},
    "TransformerXLConfig": {"lm_softmax"},
    "XLNetConfig": {"lm_bias"},
    "Gpt2Config": {"final_norm"},
}


@pytest.mark.parametrize("family", UNDECAYED)
def test_which_layer_each_variable_is_of(family):
    head, _ = UNDECAYED[family]
    sizes = SIZES | {"num_layers": 2}
    more = MORE_FIELDS.get(family, {})
    config = getattr(models, family)(vocabulary_size=20, **sizes, **more)
    variables = models.build_model(config, head).trainable_variables
    expected = DEPTHS | dict.fromkeys(HEADS.get(family, HEADS["BertConfig"]), 0)
    # Blocks that share all their weights are one, below the head and above the embeddings.
    blocks = {"encoder_0": 2, "encoder_1": 1}
    if family == "AlbertConfig":
        blocks, expected = {"encoder": 1}, expected | {"embeddings": 2}
    expected |= blocks
    depths = layer_depths(variables)
    found = {v.path.partition("/")[0]: d for v, d in zip(variables, depths, strict=True)}
    assert found == {name: expected[name] for name in found}
    assert found.keys() >= blocks.keys() | {"embeddings"}
    heads = {name for name, depth in found.items() if depth == 0}
    assert heads == HEADS.get(family, HEADS["BertConfig"])


def test_each_of_two_models_counts_its_own_blocks():
    """A DeBERTa's generator has half of the blocks, of which the top one has the top's rate."""
    sizes = SIZES | {"num_layers": 4}
    config = models.DebertaV2Config(vocabulary_size=20, max_distance=8, num_buckets=4, **sizes)
    objective = ReplacedTokens()
    pair = objective.build(config)
    variables = Pretrainer(objective, objective.trained(pair)).trainable_variables
    found = {id(v): d for v, d in zip(variables, layer_depths(variables), strict=True)}
    for name, blocks in (("generator", 2), ("discriminator", 4)):
        model = pair[name]
        expected = {"embeddings": blocks + 1}
        expected |= {f"encoder_{i}": blocks - i for i in range(blocks)}
        for layer, depth in expected.items():
            for variable in model.get_layer(layer).trainable_variables:
                own = variable is not pair["generator"].get_layer("embeddings").token_table
                if own or name == "generator":
                    assert found[id(variable)] == depth, (name, variable.path)


def test_groups_of_shared_blocks_are_layers():
    config = models.AlbertConfig(vocabulary_size=20, num_groups=3, **SIZES | {"num_layers": 3})
    variables = models.build_model(config, "classifier", num_classes=2).trainable_variables
    depths = {}
    for variable, depth in zip(variables, layer_depths(variables), strict=True):
        depths.setdefault("/".join(variable.path.split("/")[:2]), set()).add(depth)
    blocks = {name: depth for name, depth in depths.items() if name.startswith("encoder")}
    assert blocks == {f"encoder/block_{i}": {3 - i} for i in range(3)}


def test_lower_layers_learn_and_decay_more_slowly():
    config = models.BertConfig(vocabulary_size=20, **SIZES | {"num_layers": 2})
    model = models.build_model(config, "classifier", num_classes=2)
    for name in ("adamw", "lamb"):
        optimizer = make_optimizer(model, 0.5, 0.1, name=name, layer_decay=0.5)
        variables = model.trainable_variables
        before = {v.path: np.ones(v.shape) for v in variables}
        for variable in variables:
            variable.assign(before[variable.path])
        optimizer.apply([tf.zeros_like(v) for v in variables], variables)
        for layer, depth in (("pooler", 0), ("encoder_1", 1), ("encoder_0", 2), ("embeddings", 3)):
            (moved,) = {
                round(float(1 - v.numpy().ravel()[0]), 6)
                for v in variables
                if v.path.startswith(layer) and is_decayed(v)
            }
            # The decay alone moves it: rate * lambda, or in LAMB by the rate.
            whole = 0.05 if name == "adamw" else 0.5
            assert moved == pytest.approx(whole * 0.5**depth, abs=1e-6)
    with pytest.raises(InputError, match="`layer_decay` is for models with encoder blocks"):
        inputs = keras.Input((4,))
        make_optimizer(keras.Model(inputs, keras.layers.Dense(3)(inputs)), 0.1, layer_decay=0.5)
