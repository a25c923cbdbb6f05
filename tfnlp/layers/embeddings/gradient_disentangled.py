"""Embeddings that add trained differences to another layer's tables, without training those."""

import keras
from keras import ops

from tfnlp.layers.embeddings.text_embedding import TextEmbedding


@keras.saving.register_keras_serializable("tfnlp")
class GradientDisentangledEmbedding(TextEmbedding):
    """A `TextEmbedding` whose shared tables learn nothing from it: `E = sg(E_G) + E_delta`.

    He et al. 2021, 'DeBERTaV3', section 3.3 (gradient-disentangled embedding sharing). After
    `share`, tokens and positions are the rows of the other layer's tables, through which no
    gradient goes, plus rows of its own tables of differences, which start at zero and are
    trained. Segments, norm and projection are its own. Before `share` it is a `TextEmbedding`.

    Args, call arguments, returns, raises: as `TextEmbedding`.
    """

    def sums(self):
        """Return the sums of shared tables and differences, (rows, E), by name."""
        return {
            name: ops.add(getattr(self, name), difference)
            for name, difference in self._differences().items()
        }

    def set_sums(self, tables):
        """Set the differences so that `sums` returns these tables, by name."""
        for name, difference in self._differences().items():
            difference.assign(ops.subtract(tables[name], getattr(self, name)))

    def _differences(self):
        """Return the difference table of each shared table, by the shared table's name."""
        if self._owner is None:
            return {}
        tokens = {"token_table": self.token_difference}
        return tokens | ({"position_table": self.position_difference} if self.max_length else {})

    def _take_tables(self, embedding):
        self.token_table = embedding.token_table
        if self.max_length:
            self.position_table = embedding.position_table

    def build(self, token_ids_shape, segment_ids_shape=None):
        if self._owner is not None:
            self.token_difference = self._zeros("token_difference", self.token_table)
            if self.max_length:
                self.position_difference = self._zeros("position_difference", self.position_table)
            if self.num_segments:
                self.segment_table = self._table(
                    "segment_table", self.num_segments, self.embedding_dim
                )
            if self.norm is not None:
                self.norm.build((None, None, self.embedding_dim))
        super().build(token_ids_shape, segment_ids_shape)

    def _zeros(self, name, table):
        return self._weight("embeddings", name, table.shape, keras.initializers.Zeros())

    def lookup(self, table, ids):
        rows = super().lookup(table, ids)
        for name, difference in self._differences().items():
            if table is getattr(self, name):
                return ops.stop_gradient(rows) + super().lookup(difference, ids)
        return rows

    def _output_table(self):
        if self._owner is None:
            return super()._output_table()
        return ops.stop_gradient(self.token_table) + self.token_difference
