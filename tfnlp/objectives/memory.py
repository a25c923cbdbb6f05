"""The memory of each lane of the batch, from one segment to the next, as variables.

Dai et al. 2019, 'Transformer-XL', section 3.2. As variables of the trained model it is part of a
run's state, and a run that was killed goes on with it.
"""

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tfnlp.errors import InputError

# The inputs that say which lane each row is of, and whether it goes on from the batch before: (B,)
# of numbers from 0 on, and of 0 or 1.
LANES, CONTINUES = "lanes", "continues"


class LaneMemory(keras.layers.Layer):
    """The states of the last positions of each lane, before the first segment none.

    Under a mirrored strategy each replica keeps the memory of all lanes, of which it reads its
    own, so that a state is the same however many replicas there are.

    Args:
        lanes: B, over all replicas.
        num_layers, memory_length, hidden_dim: of the model.
    """

    def __init__(self, lanes, num_layers, memory_length, hidden_dim, **kwargs):
        super().__init__(dtype="float32", **kwargs)
        self.memory_length = memory_length
        # All replicas assign the same.
        options = {"initializer": "zeros", "trainable": False}
        options["aggregation"] = "only_first_replica"
        options["autocast"] = False  # float32 within a model of half precision too
        shape = (lanes, num_layers, memory_length, hidden_dim)
        self.states = self.add_weight(name="states", shape=shape, **options)
        self.filled = self.add_weight(name="filled", shape=(lanes,), dtype="int32", **options)
        self.built = True

    def read(self, lanes, continues):
        """The memory (b, num_layers, M, D) of some lanes; M is 0 where they begin anew.

        Args:
            lanes, continues: (b,) integers; all lanes go on, or none.
        """
        filled = ops.max(ops.take(self.filled, lanes) * continues)
        return ops.take(self.states, lanes, axis=0)[:, :, self.memory_length - filled :]

    def write(self, lanes, memory):
        """Keeps the memory (b, num_layers, M, D) of some lanes for their next segment."""
        context = tf.distribute.get_replica_context()
        if context is not None and context.num_replicas_in_sync > 1:
            lanes, memory = (context.all_gather(x, axis=0) for x in (lanes, memory))
        memory = ops.cast(memory, "float32")
        filled = ops.shape(memory)[2]
        missing = self.memory_length - filled
        memory = ops.pad(memory, [[0, 0], [0, 0], [missing, 0], [0, 0]])
        states = ops.scatter_update(self.states, lanes[:, None], memory)
        # A segment that broke leaves the memory as it was, as its step changes no weight.
        finite = ops.all(ops.isfinite(memory))
        self.states.assign(ops.where(finite, states, self.states))
        filled = ops.scatter_update(self.filled, lanes[:, None], 0 * lanes + filled)
        self.filled.assign(ops.where(finite, filled, self.filled))


class RemembersLanes(keras.Model):
    """A model with memory that keeps each lane's memory itself, for training and for dev apart.

    Args:
        model: a `keras.Model` that takes a `memory` and gives the next.
        config: the `TextConfig` of the model.
        lanes: B, over all replicas.

    Call arguments:
        inputs: those of the model without `memory`, and `lanes` and `continues` (B,), as
            `lane_inputs` gives them.

    Returns:
        The model's outputs without `memory`.
    """

    def __init__(self, model, config, lanes, **kwargs):
        super().__init__(**kwargs)
        sizes = (lanes, config.num_layers, config.memory_length, config.hidden_dim)
        self.model = model
        self.training_memory = LaneMemory(*sizes, name="training_memory")
        self.dev_memory = LaneMemory(*sizes, name="dev_memory")
        self.built = True

    def call(self, inputs, training=False):
        inputs = dict(inputs)
        kept = self.training_memory if training else self.dev_memory
        lanes = inputs.pop(LANES)
        memory = kept.read(lanes, inputs.pop(CONTINUES))
        outputs = dict(self.model(inputs | {"memory": memory}, training=training))
        kept.write(lanes, outputs.pop("memory"))
        return outputs


def lane_inputs(lanes, continues):
    """The inputs of a batch that has a row for each lane, in order.

    Args:
        lanes: B.
        continues: whether the lanes go on from the batch before.
    """
    return {LANES: np.arange(lanes, dtype="int32"), CONTINUES: np.full(lanes, continues, "int32")}


def lane_signature():
    """The `tf.TensorSpec`s of `lane_inputs`."""
    return dict.fromkeys((LANES, CONTINUES), tf.TensorSpec((None,), "int32"))


def with_memory(model, config, lanes):
    """`RemembersLanes` for a model; an InputError where the number of lanes is not known."""
    if lanes is None:
        raise InputError(
            "batch_size=None leaves open how many lanes the memory has; give the batch_size of "
            "the training."
        )
    return RemembersLanes(model, config, lanes, name=model.name)


def check_memory(config, what):
    """Raises an InputError unless models of a config can keep a memory of a known length."""
    name = type(config).__name__.removesuffix("Config")
    if not config.has_memory:
        raise InputError(
            f"{what} does not fit the family {name}, which has no memory; an XLNet, a "
            "Transformer-XL or a recurrent network of one direction has one."
        )
    if not config.memory_length:
        raise InputError(
            f"{what} asks for a memory, but the {name}'s memory_length is "
            f"{config.memory_length}; give it one of at least 1."
        )
