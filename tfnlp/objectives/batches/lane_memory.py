"""The memory of each lane of a batch across segments, as variables.

Dai et al. 2019, 'Transformer-XL', section 3.2. As variables of the trained model the memory is
part of a run's state, so a killed run resumes with it.
"""

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from tfnlp.configs import family_name
from tfnlp.utils.errors import InputError

# The inputs with the lane of each row, counted from 0, and 0 or 1 for whether it continues from
# the batch before: (B,) each.
LANES, CONTINUES = "lanes", "continues"


class LaneMemory(keras.layers.Layer):
    """The hidden states of the last positions of each lane, empty before the first segment.

    Under a mirrored strategy each replica stores the memory of all lanes and reads its own, so the
    state does not depend on the number of replicas.

    Args:
        lanes: B, over all replicas.
        num_layers, memory_length, hidden_dim: dimensions of the model.
    """

    def __init__(self, lanes, num_layers, memory_length, hidden_dim, **kwargs):
        super().__init__(dtype="float32", **kwargs)
        self.memory_length = memory_length
        # All replicas assign the same value.
        options = {"initializer": "zeros", "trainable": False}
        options["aggregation"] = "only_first_replica"
        options["autocast"] = False  # float32 even in a model of half precision
        shape = (lanes, num_layers, memory_length, hidden_dim)
        self.states = self.add_weight(name="states", shape=shape, **options)
        self.filled = self.add_weight(name="filled", shape=(lanes,), dtype="int32", **options)
        self.built = True

    def read(self, lanes, continues):
        """Return the memory (b, num_layers, M, D) of lanes (b,); M is 0 if they start anew."""
        filled = ops.max(ops.take(self.filled, lanes) * continues)
        return ops.take(self.states, lanes, axis=0)[:, :, self.memory_length - filled :]

    def write(self, lanes, memory):
        """Store the memory (b, num_layers, M, D) of some lanes for their next segment."""
        context = tf.distribute.get_replica_context()
        if context is not None and context.num_replicas_in_sync > 1:
            lanes, memory = (context.all_gather(x, axis=0) for x in (lanes, memory))
        memory, filled = ops.cast(memory, "float32"), ops.shape(memory)[2]
        missing = self.memory_length - filled
        memory = ops.pad(memory, [[0, 0], [0, 0], [missing, 0], [0, 0]])
        # Non-finite states leave the memory unchanged, just as their step changes no weight.
        finite = ops.all(ops.isfinite(memory))
        for kept, new in ((self.states, memory), (self.filled, 0 * lanes + filled)):
            updated = ops.scatter_update(kept, lanes[:, None], new)
            kept.assign(ops.where(finite, updated, kept))


class WithLaneMemory(keras.Model):
    """A model that stores the memory of each lane, separately for training and dev.

    Args:
        model: a `keras.Model` that takes a `memory` and returns the next.
        config: the `TextConfig` of the model.
        lanes: B, over all replicas.

    Call arguments:
        inputs: those of the model without `memory`, plus `lanes` and `continues` (B,), as from
            `lane_inputs`.

    Returns:
        The model's outputs without `memory`.
    """

    def __init__(self, model, config, lanes):
        super().__init__(name=model.name)
        sizes = (lanes, config.num_layers, config.memory_length, config.hidden_dim)
        self.model = model
        self.training_memory = LaneMemory(*sizes, name="training_memory")
        self.dev_memory = LaneMemory(*sizes, name="dev_memory")
        self.built = True

    def call(self, inputs, training=False):
        inputs, kept = dict(inputs), self.training_memory if training else self.dev_memory
        lanes = inputs.pop(LANES)
        memory = kept.read(lanes, inputs.pop(CONTINUES))
        outputs = dict(self.model(inputs | {"memory": memory}, training=training))
        kept.write(lanes, outputs.pop("memory"))
        return outputs


def lane_inputs(lanes, continues):
    """Return the lane inputs of a batch of B lanes in order, which all continue or none does."""
    return {LANES: np.arange(lanes, dtype="int32"), CONTINUES: np.full(lanes, continues, "int32")}


def check_memory(config, setting):
    """Raise an InputError unless models of a config have a memory of a known length."""
    if not (config.has_memory and config.memory_length):
        raise InputError(
            f"{setting} does not fit the family {family_name(config)}, which has no memory, or a "
            "`memory_length` of 0 or None; give a Transformer-XL, an XLNet or a recurrent network "
            "of one direction, and a memory_length of at least 1."
        )
