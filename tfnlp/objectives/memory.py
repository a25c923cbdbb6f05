"""The memory of each lane of the batch, from one segment to the next, as variables.

Dai et al. 2019, 'Transformer-XL', section 3.2. As variables of the trained model it is part of a
run's state, and a run that was killed goes on with it.
"""

import keras
import tensorflow as tf
from keras import ops

from tfnlp.errors import InputError

# The input that says whether a batch's lanes go on from the batch before: (B,) of 0 or 1.
CONTINUES = "continues"


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
        shape = (lanes, num_layers, memory_length, hidden_dim)
        self.states = self.add_weight(name="states", shape=shape, **options)
        self.filled = self.add_weight(name="filled", shape=(), dtype="int32", **options)
        self.built = True

    def read(self, continues):
        """The memory (b, num_layers, M, D) of a replica's lanes; M is 0 where they begin anew."""
        filled = ops.convert_to_tensor(self.filled) * ops.max(continues)
        states = ops.convert_to_tensor(self.states)
        rows, context = ops.shape(continues)[0], _replicas()
        if context is not None:
            first = context.replica_id_in_sync_group * rows
            states = ops.take(states, first + ops.arange(rows), axis=0)
        return states[:, :, self.memory_length - filled :]

    def write(self, memory):
        """Keeps the memory (b, num_layers, M, D) for the next segment."""
        context = _replicas()
        if context is not None:
            memory = context.all_gather(memory, axis=0)
        # A segment that broke leaves the memory as it was, as its step changes no weight.
        finite = ops.all(ops.isfinite(memory))
        filled = ops.shape(memory)[2]
        missing = self.memory_length - filled
        states = ops.pad(memory, [[0, 0], [0, 0], [missing, 0], [0, 0]])
        self.states.assign(ops.where(finite, states, self.states))
        self.filled.assign(ops.where(finite, filled, self.filled))


class RemembersLanes(keras.Model):
    """A model with memory that keeps each lane's memory itself, for training and for dev apart.

    Args:
        model: a `keras.Model` that takes a `memory` and gives the next.
        config: the `TextConfig` of the model.
        lanes: B, over all replicas.

    Call arguments:
        inputs: those of the model without `memory`, and `continues` (B,), 1 where the batch's
            segments go on from those of the batch before.

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
        lanes = self.training_memory if training else self.dev_memory
        memory = lanes.read(inputs.pop(CONTINUES))
        outputs = dict(self.model(inputs | {"memory": memory}, training=training))
        lanes.write(outputs.pop("memory"))
        return outputs


def with_memory(model, config, lanes):
    """`RemembersLanes`, for a model whose lanes fit the strategy.

    Raises:
        InputError: where the number of lanes is not known, or no multiple of the replicas'.
    """
    if lanes is None:
        raise InputError(
            "batch_size=None leaves open how many lanes the memory has; give the batch_size of "
            "the training."
        )
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if lanes % replicas:
        raise InputError(
            f"batch_size={lanes} cannot be shared by {replicas} devices, each of which keeps the "
            "memory of as many lanes; give a multiple."
        )
    return RemembersLanes(model, config, lanes, name=model.name)


def check_memory(config, what):
    """Raises an InputError unless models of a config can keep a memory of a known length."""
    name = type(config).__name__.removesuffix("Config")
    if not config.has_memory:
        raise InputError(
            f"{what} does not fit the family {name}, which has no memory; an XLNet or a "
            "Transformer-XL has one."
        )
    if not config.memory_length:
        raise InputError(
            f"{what} asks for a memory, but the {name}'s memory_length is "
            f"{config.memory_length}; give it one of at least 1."
        )


def _replicas():
    """The replica context where there are several replicas, else None."""
    context = tf.distribute.get_replica_context()
    return None if context is None or context.num_replicas_in_sync == 1 else context
