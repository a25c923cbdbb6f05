"""A supernet: one model whose parts are trained to run alone, each of them a student.

Cai et al. 2020, 'Once-for-All', section 3; Yin et al. 2021, 'AutoTinyBERT', section 3. Any of the
layers may be left out (Fan et al. 2020, 'LayerDrop', section 3), and the last heads and units.
"""

import contextlib
import copy
import dataclasses
import functools

import keras
import numpy as np
import tensorflow as tf
from keras import ops
from keras.src.backend.common.stateless_scope import in_stateless_scope

from distill.compression import measure_importance, order_structure, prune_structure
from distill.compression.structured_pruning import GATED
from distill.learning.distillation import Distillation
from distill.learning.distiller import Distiller
from distill.learning.student import make_student
from distill.search.sub_student import SearchSpace
from tfnlp.layers import EncoderBlock
from tfnlp.models import config_of
from tfnlp.training.run.inference import predictor
from tfnlp.training.step.shared_traces import block_kind, traced_block
from tfnlp.utils.errors import InputError

# Students of random parts in each step, beside the largest and the smallest: the sandwich rule
# (Yu & Huang 2019, 'Universally Slimmable Networks', section 3.2) with n = 4.
DRAWN = 2


@dataclasses.dataclass(frozen=True)
class Parts:
    """Parts of a supernet that run, as tensors.

    Args:
        layers: (supernet's layers,) bool.
        num_heads, num_units: integers, of the first in each layer.
    """

    layers: tf.Tensor
    num_heads: tf.Tensor
    num_units: tf.Tensor

    @classmethod
    def of(cls, student, depth):
        """Return the parts of a `SubStudent` of a supernet of `depth` layers."""
        layers = np.isin(np.arange(depth), student.layers)
        return cls(*map(tf.constant, (layers, student.num_heads, student.intermediate_dim)))


class Supernet:
    """Model of which parts can run alone.

    Args:
        model: from `order_by_importance`.

    Attributes:
        parts: `Parts`, those that run where `gated` is active.
        depth: the number of its layers.

    Raises:
        InputError: if the layers share weights, or do not all compute alike, one after the other.
    """

    parts = None

    def __init__(self, model):
        self.model, self.config = model, config_of(model)
        self.blocks = [layer for layer in model.layers if isinstance(layer, EncoderBlock)]
        self.depth = len(self.blocks)
        kinds = {block_kind(block) for block in self.blocks}
        alike = len(kinds) == 1 and self.depth == self.config.num_layers
        if not alike or getattr(self.config, "convolution_size", 0):  # after the first of them
            raise InputError(
                f"The layers of this {model.name} differ in what they compute, or share their "
                "weights, so that none can be left out; give a teacher such as BERT."
            )

    @contextlib.contextmanager
    def gated(self):
        """Run the `parts` alone while the context is active, in functions traced within it."""
        function = traced_block(self.blocks[0])
        for number, block in enumerate(self.blocks):
            block.call = functools.partial(self._run, number, block, function)
        try:
            yield
        finally:
            for block in self.blocks:
                del block.call

    def _run(self, number, block, function, inputs, *args, **kwargs):
        """Run a block's parts, or return its inputs if the layer is left out."""
        if in_stateless_scope() or not tf.inside_function():
            return type(block).call(block, inputs, *args, **kwargs)
        values = [self._masked(variable) for variable in block.variables]
        places = []  # of the variables that a call changes, such as seeds

        def run():
            outputs, changed = function(values, (inputs, *args), kwargs)
            places.extend(changed)
            return outputs, [*changed.values()]

        def leave_out():
            return inputs, [values[place] for place in places]

        outputs, changed = tf.cond(self.parts.layers[number], run, leave_out)
        for place, value in zip(places, changed, strict=True):
            block.variables[place].assign(value)
        return outputs

    def _masked(self, variable):
        """Return a variable's value, 0 in the rows that read heads or units left out."""
        value = tf.convert_to_tensor(variable._value)
        kept = None
        if variable.path.endswith(GATED["units"]):
            kept = tf.range(self.config.intermediate_dim) < self.parts.num_units
        elif variable.path.endswith(GATED["heads"]) and self.config.any_head_dim:
            heads = tf.range(self.config.num_heads) < self.parts.num_heads
            kept = tf.repeat(heads, value.shape[0] // self.config.num_heads)
        return value if kept is None else value * tf.cast(kept, value.dtype)[:, None]


def order_by_importance(teacher, *data, **options):
    """Return a copy of a teacher with the most important heads and units of each layer first.

    Args:
        teacher: fine-tuned for the task.
        data, options: the other arguments of `measure_importance`.
    """
    return order_structure(teacher, measure_importance(teacher, *data, **options))


def extract(model, student):
    """Build the model of a `SubStudent`.

    Args:
        model: of a supernet, with the student's vocabulary.
        student: a `SubStudent`.

    Returns:
        A `TextModel` with the outputs that the supernet has where these parts run.

    Raises:
        InputError: as `prune_structure`.
    """
    config = config_of(model)
    sizes = {"heads": config.num_heads, "units": config.intermediate_dim}
    if not config.any_head_dim:
        del sizes["heads"]
    first = {kind: -np.arange(size) for kind, size in sizes.items()}
    importance = {f"encoder_{number}": first for number in range(config.num_layers)}
    narrow = prune_structure(model, importance, student.num_heads, student.intermediate_dim)
    return make_student(narrow, len(student.layers), [*student.layers])


class SupernetDistiller(Distiller):
    """Distiller of several students in each step: the largest, the smallest, and random ones.

    Args:
        supernet: a `Supernet`.
        space: a complete `SearchSpace`.
        seed: of the random ones.
        student: the supernet's model, or one of some of its outputs.
        task, terms, teacher, hard_label_weight: as in `Distiller`. The loss is the students' mean.
    """

    def __init__(self, supernet, space, seed, student, *args, **kwargs):
        super().__init__(student, *args, **kwargs)
        self.supernet, self.space = supernet, space
        ends = space.largest(supernet.depth), space.smallest(supernet.depth)
        self.ends = [Parts.of(student, supernet.depth) for student in ends]
        # Tracked, so that a resumed run draws the same numbers as an uninterrupted one.
        self.draws = keras.random.SeedGenerator(seed)
        # Traced once for all students of a step.
        self.run_parts = tf.function(self._run_parts, autograph=False)

    def fit(self, *args, **kwargs):
        """Train as Keras does; scores in between are those of the smallest student."""
        self.supernet.parts = self.ends[1]
        with self.supernet.gated():
            return keras.Model.fit(self, *args, **kwargs)

    def call(self, inputs, training=None):
        if not training:
            return super().call(inputs, training)
        drawn = [self._draw() for _ in range(DRAWN)]
        # A stateless pass runs the whole model, whose trace must not stay.
        run = self._run_parts if in_stateless_scope() else self.run_parts
        outputs = [run(vars(parts), inputs) for parts in (*self.ends, *drawn)]
        self.supernet.parts = self.ends[1]
        return outputs

    def _run_parts(self, parts, inputs):
        """Return the outputs in training of the parts of a dict, as of `Parts`."""
        self.supernet.parts = Parts(**parts)
        return super().call(inputs, training=True)

    def _draw(self):
        """Draw the parts of a student: any of the space's numbers, and any layers."""
        numbers = [
            tf.gather(options, keras.random.randint((), 0, len(options), seed=self.draws))
            for options in (
                self.space.num_layers,
                self.space.num_heads,
                self.space.intermediate_dim,
            )
        ]
        order = ops.argsort(keras.random.uniform((self.supernet.depth,), seed=self.draws))
        return Parts(order < numbers[0], *numbers[1:])

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = super().compute_loss
        if not training:
            return loss(x, y, y_pred, sample_weight, training)
        losses = [loss(x, y, outputs, sample_weight, training) for outputs in y_pred]
        return sum(losses) / len(losses)


@dataclasses.dataclass
class SupernetDistillation(Distillation):
    """Distillation of a supernet, whose best epoch is that of its smallest student.

    Args: those of `Distillation` with the supernet's model as `model`, and
        supernet: a `Supernet`.
        space: a complete `SearchSpace`.
    """

    supernet: Supernet = dataclasses.field(kw_only=True)
    space: SearchSpace = dataclasses.field(kw_only=True)

    def distiller(self, *arguments):
        return SupernetDistiller(self.supernet, self.space, self.config.seed, *arguments)


class StudentScorer:
    """Scores of a supernet's students on examples, a dict of figures for each.

    Args:
        supernet: a `Supernet`, with the vocabulary of the students.
        task: see `tfnlp.tasks`.
        examples: of the task.
        batches: `LengthBatches` of them.
    """

    def __init__(self, supernet, task, examples, batches):
        self.supernet, self.task = supernet, copy.copy(task)  # what is tuned is the student's
        self.examples, self.batches = examples, batches
        self.parts = Parts(*map(tf.Variable, ([False] * supernet.depth, 0, 0)))
        self.predict = predictor(self.task.batch_model(supernet.model), task.kind.reads)

    def __call__(self, student):
        parts = Parts.of(student, self.supernet.depth)
        for variable, value in zip(vars(self.parts).values(), vars(parts).values(), strict=True):
            variable.assign(value)
        self.supernet.parts = self.parts
        with self.supernet.gated():  # traced at the first call
            outputs = self.predict(self.batches)
        self.task.tune(self.examples, outputs)
        return self.task.score(self.examples, self.batches.encodings, outputs)
