"""Disentangled attention (DeBERTa)."""

from typing import Unpack

import keras
from keras import ops

from tfnlp.functional.attention import Scores
from tfnlp.functional.attention_heads import scaled, split_heads, split_table
from tfnlp.functional.positions import distance_rows, rows_in_use
from tfnlp.functional.relative_scores import (
    content_to_position,
    position_to_content,
    position_to_position,
    row_products,
)
from tfnlp.layers.attention.base_attention import BaseAttention
from tfnlp.layers.attention.relative_position_table import RelativePositionTable
from tfnlp.layers.core.base_layer import check_states
from tfnlp.layers.core.weight_options import AttentionOptions, EmbeddingsOptions, weight_options

ATTENTION_TERMS = ("c2c", "c2p", "p2c", "p2p")
TABLE_ARGUMENTS = ("max_distance", "num_buckets", "layer_norm_epsilon")
TABLE_ARGUMENTS += weight_options(EmbeddingsOptions)


class DisentangledOptions(AttentionOptions, EmbeddingsOptions, total=False):
    """Options of a `DisentangledAttention`: of its projections and its table."""


@keras.saving.register_keras_serializable("tfnlp")
class DisentangledAttention(BaseAttention):
    """Attention from content and relative position apart, in up to four terms.

    He et al. 2020, 'DeBERTa', eq. 4: with r(i, j) the row of the relative table for the
    distance i - j, and t the number of terms,
    `score(i, j) = (q_i . k_j + q_i . k^r_{r(i, j)} + k_j . q^r_{r(i, j)}) / sqrt(t H)`: content
    to content (c2c), content to position (c2p), position to content (p2c). Position to
    position (p2p), `q^r_{r(i, j)} . k^r_{r(i, j)}`, is the fourth term of eq. 2, which the
    paper leaves out. The queries are the last T of the S keys. Arguments by position are those of
    `keras.layers.MultiHeadAttention`; the scores it returns are those before the softmax.

    The published models are: v1, `joint_projection=True` and `share_att_key=False`; v2 and
    v3, `share_att_key=True`, `num_buckets=256`, `max_distance=512` and normalised positions.

    Args: those of `BaseAttention`, and
        terms: which of "c2c", "c2p", "p2c" and "p2p" the scores are the sum of.
        max_distance, num_buckets: k, beyond which keys count as k away; with buckets, as
            `tfnlp.layers.log_buckets` takes them.
        share_att_key: whether positions go through the projections of query and key.
        joint_projection: one kernel for query, key and value, head by head, with biases for
            query and value alone; the projection of position keys has no bias then.
        normalize_positions: layer norm, with `layer_norm_epsilon`, on the layer's own table.
        position_dropout: share of the relative table dropped in training.
        embeddings_initializer, embeddings_regularizer, embeddings_constraint: for the own table.

    Call arguments: those of `MultiHeadAttention` without `cache`, and
        position_table: (2 k, D), or (2 num_buckets, D), to share it between layers (see
            `RelativePositionTable`); if None the layer has its own.

    Returns:
        As `MultiHeadAttention`. A query that may see nothing gets zeros, then the output bias.

    Raises:
        ValueError: as `MultiHeadAttention` does, for unknown terms, and a table of other rows.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        dropout=0.0,
        use_bias=True,
        output_dim=None,
        *,
        block_size=None,
        terms=("c2c", "c2p", "p2c"),
        max_distance=512,
        num_buckets=None,
        share_att_key=False,
        joint_projection=False,
        normalize_positions=False,
        position_dropout=0.0,
        layer_norm_epsilon=1e-7,
        **kwargs: Unpack[DisentangledOptions],
    ):
        kwargs |= {"output_dim": output_dim, "block_size": block_size}
        super().__init__(num_heads, key_dim, value_dim, dropout, use_bias, **kwargs)
        if not terms or isinstance(terms, str) or {*terms} - {*ATTENTION_TERMS}:
            raise ValueError(f"terms={terms!r} must be a tuple of one or more {ATTENTION_TERMS}.")
        self.terms = tuple(term for term in ATTENTION_TERMS if term in terms)
        self.max_distance = max_distance
        self.num_buckets = num_buckets
        self.share_att_key = share_att_key
        self.joint_projection = joint_projection
        self.normalize_positions = normalize_positions
        self.position_dropout = position_dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.needs_keys = bool({"c2p", "p2p"} & {*terms})
        self.needs_queries = bool({"p2c", "p2p"} & {*terms})
        self.position_dropout_layer = self._dropout_layer(position_dropout)
        self.rows_by_distance = distance_rows(max_distance, num_buckets)
        self.num_rows = 2 * (num_buckets or max_distance)

    def build(self, query_shape, value_shape=None, key_shape=None, position_table_shape=None):
        width = query_shape[-1]
        self._build_inputs(query_shape, value_shape, key_shape)
        self.position_key = self.position_query = self.own_table = None
        if self.needs_keys and not self.share_att_key:
            use_bias = self.use_bias and not self.joint_projection
            self.position_key = self._position_projection("position_key", width, use_bias=use_bias)
        if self.needs_queries and not self.share_att_key:
            self.position_query = self._position_projection("position_query", width)
        self._build_output(query_shape)
        if position_table_shape is None and self.terms != ("c2c",):
            self.own_table = RelativePositionTable(
                **{name: getattr(self, name) for name in TABLE_ARGUMENTS},
                normalize=self.normalize_positions,
                dtype=self.dtype_policy,
                name="position_table",
            )
            self.own_table.build(query_shape)
        elif position_table_shape and position_table_shape[0] != self.num_rows:
            rows = position_table_shape[0]
            raise ValueError(f"position_table has {rows} rows, but must have {self.num_rows}.")

    def call(
        self,
        query,
        value=None,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        mask=None,
        return_projections=False,
        *,
        position_table=None,
    ):
        call = self._gather(
            query_mask=query_mask,
            value_mask=value_mask,
            key_mask=key_mask,
            attention_mask=attention_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            use_causal_mask=use_causal_mask,
            mask=mask,
            return_projections=return_projections,
        )
        q, k, v, mask = self._inputs(call, query, value, key)
        content = scaled(q, len(self.terms))  # (B, N, T, H)
        lengths = ops.shape(q)[2], ops.shape(k)[2]
        # k^r and q^r, (N, R, H), and the row r(i, j) of each offset, (T + S - 1,)
        kr, qr, rows = self._positions(position_table, lengths, call.training)
        scores = Scores(content, k, has_content="c2c" in self.terms)  # c2c: q_i . k_j
        if "c2p" in self.terms:  # c2p: q_i . k^r_{r(i, j)}
            scores += content_to_position(content, kr, rows)
        if "p2c" in self.terms:  # p2c: k_j . q^r_{r(i, j)}
            scores += position_to_content(k, qr, rows)
        if "p2p" in self.terms:  # p2p: q^r_{r(i, j)} . k^r_{r(i, j)}
            product = call.product("p2p", row_products, position_query=qr, position_key=kr)
            scores += position_to_position(content, product, rows)
        return self._attend(call, scores, (q, k, v), mask)

    def rounded_tensors(self):
        names = [term for term in ("c2p", "p2c") if term in self.terms]
        names += ["position_query"] * self.needs_queries
        rounded = super().rounded_tensors() | dict.fromkeys(names)
        if self.joint_projection:
            value = None if self.use_bias else "joint.outputs"
            rounded |= {"key": "joint.outputs", "value": value}
        return rounded

    def _build_inputs(self, query_shape, value_shape=None, key_shape=None):
        if not self.joint_projection:
            super()._build_inputs(query_shape, value_shape, key_shape)
            return
        check_states(query=query_shape, value=value_shape, key=key_shape)
        units, shape = self.num_heads * self.key_dim, (None, None, query_shape[-1])
        self.joint = self._projection(3 * units, "joint", shape, use_bias=False)  # head by head
        if self.use_bias:
            self.query_bias, self.value_bias = (
                self._weight("bias", name, (units,), self.bias_initializer)
                for name in ("query_bias", "value_bias")
            )

    def _project(self, query, key, value):
        if not self.joint_projection:
            return super()._project(query, key, value)
        inputs, num_heads = (query, key, value), self.num_heads
        if query is key and key is value:
            joint = split_heads(self.joint(query), num_heads)  # (B, N, L, 3 H)
            q, k, v = ops.split(joint, 3, axis=-1)
        elif not self.joint.is_plain:
            # More than a product with the kernel: three times as much, of which a third is used.
            q, k, v = (
                ops.split(split_heads(self.joint(x), num_heads), 3, axis=-1)[i]
                for i, x in enumerate(inputs)
            )
        else:
            kernel = ops.reshape(self.joint.kernel, (-1, num_heads, 3, self.key_dim))
            q, k, v = (
                ops.einsum("bld,dnh->bnlh", x, kernel[:, :, i]) for i, x in enumerate(inputs)
            )
        if not self.use_bias:
            return q, k, v
        shape = (num_heads, 1, self.key_dim)
        q = q + ops.reshape(self.query_bias, shape)
        return q, k, v + ops.reshape(self.value_bias, shape)

    def _positions(self, table, lengths, training):
        """Return the table's keys, its scaled queries, and the row of each offset."""
        if self.terms == ("c2c",):
            return None, None, None
        if table is None:
            table = self.own_table(self.own_table.table)
        table, rows = rows_in_use(table, self.rows_by_distance, *lengths, training)
        table = self.position_dropout_layer(table, training=training)
        layers = self.position_key, self.position_query
        to_keys, to_queries = (self.key, self.query) if self.share_att_key else layers
        kr = split_table(to_keys(table), self.num_heads) if self.needs_keys else None
        qr = split_table(to_queries(table), self.num_heads) if self.needs_queries else None
        qr = None if qr is None else scaled(qr, len(self.terms))
        return kr, qr, rows
