"""Vectors of words from their characters."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.activations import get_activation
from tfnlp.functional.masks import MASKED
from tfnlp.functional.shapes import reshape
from tfnlp.layers.core.base_layer import BaseLayer
from tfnlp.layers.core.weight_options import (
    BiasPenalties,
    EmbeddingsOptions,
    KernelOptions,
)
from tfnlp.layers.embeddings.token_layer import as_ids


class CNNOptions(EmbeddingsOptions, KernelOptions, BiasPenalties, total=False):
    """Options of a `CharacterCNN`, whose biases start at numbers of their own."""


@keras.saving.register_keras_serializable("tfnlp")
class CharacterCNN(BaseLayer):
    """Word vectors from characters by convolutions, a maximum, highways and a projection.

    Kim et al. 2016, 'Character-Aware Neural Language Models', section 2.2 and 2.3, as ELMo has
    it (Peters et al. 2018; `bilm-tf`). A filter of width w gives f_s for the characters s to
    s + w - 1 of a word, and the word has max_s f_s. A highway (Srivastava et al. 2015) is
    y = t * relu(W x + b) + (1 - t) * x with the gate t = sigmoid(W_T x + b_T), where b_T starts
    at -2.

    Windows lie within a word, and a word that is shorter than a filter has one, filled up with
    zeros. So the vector of a word does not depend on the padding beside it.

    Args:
        hidden_dim: D, the width of the vectors.
        filters: number of filters of width 1, of width 2, and so on.
        character_dim: E, the width of a character's embedding.
        num_highways: number of highways.
        activation: of the filters, "relu" or "tanh" (Kim et al.).
        num_characters: number of character ids, with the padding 0.
        embeddings_initializer, embeddings_regularizer, embeddings_constraint: for the table of
            characters.
        kernel_initializer, kernel_regularizer, kernel_constraint: for the kernels.
        bias_regularizer, bias_constraint: for the biases.

    Call arguments:
        character_ids: (..., W), the characters of each word, 0 behind its last.

    Returns:
        (..., D).
    """

    def __init__(
        self,
        hidden_dim,
        filters=(32, 32, 64, 128, 256, 512, 1024),
        character_dim=16,
        num_highways=2,
        activation="relu",
        num_characters=262,
        **kwargs: Unpack[CNNOptions],
    ):
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.filters = filters
        self.character_dim = character_dim
        self.num_highways = num_highways
        self.activation = activation
        self.num_characters = num_characters
        self.activate = get_activation(activation)
        self.convolutions = [
            keras.layers.Conv1D(
                count,
                width,
                kernel_initializer=self.kernel_initializer.clone(),
                dtype=self.dtype_policy,
                name=f"convolution_{width}",
                **self.options("kernel", "bias"),
            )
            for width, count in enumerate(filters, 1)
        ]
        units, closed = sum(filters), keras.initializers.Constant(-2.0)
        self.gates = [
            self._dense(units, f"gate_{i}", bias_initializer=closed) for i in range(num_highways)
        ]
        self.transforms = [
            self._dense(units, f"transform_{i}", activation="relu") for i in range(num_highways)
        ]
        self.projection = self._dense(hidden_dim, "projection")

    def build(self, shape):
        size = self.num_characters, self.character_dim
        initializer = self.embeddings_initializer
        self.character_table = self._weight("embeddings", "character_table", size, initializer)
        for convolution in self.convolutions:
            convolution.build((None, None, self.character_dim))
        for layer in (*self.gates, *self.transforms, self.projection):
            layer.build((None, sum(self.filters)))

    def call(self, character_ids):
        ids = as_ids(character_ids)
        words = ops.reshape(ids, (-1, ops.shape(ids)[-1]))  # (n, W)
        real = ops.cast(words > 0, "int32")
        lengths = ops.sum(real, axis=1, keepdims=True)
        table = ops.cast(self.character_table, self.compute_dtype)
        x = ops.take(table, words, axis=0) * ops.cast(real, self.compute_dtype)[..., None]
        x = ops.concatenate([self._widest(x, lengths, f) for f in self.convolutions], axis=-1)
        for gate, transform in zip(self.gates, self.transforms, strict=True):
            share = ops.sigmoid(gate(x))
            x = share * transform(x) + (1 - share) * x
        return reshape(self.projection(x), (*ops.shape(ids)[:-1], self.hidden_dim))

    def _widest(self, x, lengths, convolution):
        """Return the maximum of each filter over a word's windows, (n, filters).

        Args:
            x: (n, W, E), zeros behind each word.
            lengths: (n, 1), characters of each word.
            convolution: the filters of one width.
        """
        width = convolution.kernel_size[0]
        values = convolution(ops.pad(x, ((0, 0), (0, width - 1), (0, 0))))  # (n, W, filters)
        starts = ops.arange(ops.shape(x)[1], dtype="int32")
        within = starts[None] <= ops.maximum(lengths - width, 0)  # (n, W)
        values = ops.where(ops.expand_dims(within, -1), values, MASKED)
        return self.activate(ops.max(values, axis=1))

    def compute_output_spec(self, character_ids):
        return self._specs((*character_ids.shape[:-1], self.hidden_dim))
