"""Disentangled attention (DeBERTa)."""

import keras
import numpy as np
from keras import ops

from tfnlp.functional.attention import Scores
from tfnlp.functional.attention_heads import scaled, split_table
from tfnlp.functional.positions import check_distances, distance_rows, offset_rows, used_rows
from tfnlp.functional.relative_scores import (
    content_to_position,
    position_to_content,
    position_to_position,
)
from tfnlp.layers.attention.base_attention import BaseAttention, select_weight
from tfnlp.layers.attention.joint_projection import build_joint_projection, project_jointly
from tfnlp.layers.attention.relative_position_table import RelativePositionTable
from tfnlp.layers.core.base_layer import EMBEDDINGS_OPTIONS

ATTENTION_TERMS = ("c2c", "c2p", "p2c", "p2p")


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

    Args:
        num_heads, key_dim, value_dim, dropout, use_bias, output_dim, block_size,
            kernel_initializer, output_initializer, activity_regularizer, kernel_regularizer,
            bias_regularizer, kernel_constraint, bias_constraint, bias_initializer: as
            `MultiHeadAttention` takes them.
        terms: which of "c2c", "c2p", "p2c" and "p2p" the scores are the sum of.
        max_distance: k: farther keys count as k away. With buckets, the distance (plus one)
            that the last bucket stands for.
        num_buckets: distances beyond half of it share buckets on a log scale
            (`tfnlp.layers.log_buckets`); none if None.
        share_att_key: whether positions go through the projections of query and key.
        joint_projection: one kernel for query, key and value, head by head, with biases for
            query and value alone (v1); the projection of position keys has no bias then.
        normalize_positions: layer norm on the layer's own relative table.
        position_dropout: share of the relative table dropped in training.
        embeddings_initializer, embeddings_regularizer, embeddings_constraint: for the layer's
            own relative table.
        layer_norm_epsilon: of that norm.

    Call arguments:
        query: (B, T, D).
        value: (B, S, D'); the query if None (self-attention).
        key: (B, S, D'); the value if None.
        attention_mask: (B, T, S), (B, 1, S), (T, S) or (B, N, T, S), true where T may see S.
        return_attention_scores: also return the scores, (B, N, T, S).
        training: whether dropout is on.
        use_causal_mask: hide every position after the query's own.
        position_table: (2 k, D), or (2 num_buckets, D), to share it between layers (see
            `RelativePositionTable`); if None the layer has its own.
        return_projections: also return query, key and value of the content, as
            `MultiHeadAttention` does.

    Returns:
        (B, T, D), or a tuple of it, the scaled scores before mask and softmax, and the
        projections, as asked for. A query that may see nothing gets zeros, then the output bias.

    Raises:
        ValueError: for sizes below 1, unknown terms, flags that exclude each other, masks or a
            table that do not fit, and where the scores are asked for with `block_size`.
    """

    OPTIONS = BaseAttention.OPTIONS + EMBEDDINGS_OPTIONS

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        dropout=0.0,
        use_bias=True,
        output_dim=None,
        *,
        terms=("c2c", "c2p", "p2c"),
        max_distance=512,
        num_buckets=None,
        share_att_key=False,
        joint_projection=False,
        normalize_positions=False,
        position_dropout=0.0,
        embeddings_initializer="uniform",
        layer_norm_epsilon=1e-7,
        **kwargs,
    ):
        super().__init__(num_heads, key_dim, value_dim, dropout, use_bias, output_dim, **kwargs)
        unknown = [term for term in terms if term not in ATTENTION_TERMS]
        if unknown or not terms or isinstance(terms, str):
            raise ValueError(
                f"terms={terms!r} must be one or more of {ATTENTION_TERMS}, as a tuple."
            )
        if share_att_key and joint_projection:
            raise ValueError(
                "share_att_key=True needs projections of query and key by themselves, but "
                "joint_projection=True joins them; set one of them to False."
            )
        if joint_projection and self.value_dim != key_dim:
            raise ValueError(
                f"value_dim={self.value_dim} must be key_dim={key_dim} with joint_projection."
            )
        self.terms = tuple(term for term in ATTENTION_TERMS if term in terms)
        self.max_distance = max_distance
        self.num_buckets = num_buckets
        self.share_att_key = share_att_key
        self.joint_projection = joint_projection
        self.normalize_positions = normalize_positions
        self.position_dropout = position_dropout
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.layer_norm_epsilon = layer_norm_epsilon
        self.position_dropout_layer = keras.layers.Dropout(
            position_dropout, dtype=self.dtype_policy
        )
        check_distances(max_distance, num_buckets)
        self.rows_by_distance = distance_rows(max_distance, num_buckets)
        self.num_rows = 2 * (num_buckets or max_distance)

    def build(self, query_shape, value_shape=None, key_shape=None, position_table_shape=None):
        width, key_width = query_shape[-1], (key_shape or value_shape or query_shape)[-1]
        units = self.num_heads * self.key_dim
        self._build_inputs(query_shape, value_shape, key_shape)
        if not self.share_att_key:
            # Without a regularizer of their activity, which is of no input.
            if "c2p" in self.terms or "p2p" in self.terms:
                self.position_key = self._projection(
                    units,
                    "position_key",
                    (None, width),
                    use_bias=self.use_bias and not self.joint_projection,
                    activity_regularizer=None,
                )
            if "p2c" in self.terms or "p2p" in self.terms:
                self.position_query = self._projection(
                    units, "position_query", (None, width), activity_regularizer=None
                )
        elif key_width != width:
            raise ValueError(
                f"key has width {key_width}, but share_att_key=True needs that of the "
                f"query, {width}."
            )
        self._build_output(query_shape)
        self.own_table = None
        if position_table_shape is None and self.terms != ("c2c",):
            self.own_table = RelativePositionTable(
                self.max_distance,
                self.num_buckets,
                normalize=self.normalize_positions,
                embeddings_initializer=self.embeddings_initializer.clone(),
                layer_norm_epsilon=self.layer_norm_epsilon,
                dtype=self.dtype_policy,
                name="position_table",
                **self.options("embeddings"),
            )
            self.own_table.build(query_shape)
        elif position_table_shape is not None:
            due = (self.num_rows, width)
            if tuple(position_table_shape) != due:
                raise ValueError(
                    f"position_table has shape {tuple(position_table_shape)}, but must be {due}."
                )

    def _build_inputs(self, query_shape, value_shape=None, key_shape=None):
        if self.joint_projection:
            build_joint_projection(self, query_shape, value_shape, key_shape)
        else:
            super()._build_inputs(query_shape, value_shape, key_shape)

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
        position_table=None,
        position_table_mask=None,
        mask=None,
        return_projections=False,
    ):
        call = self._gather(
            query_mask,
            value_mask,
            key_mask,
            attention_mask,
            mask,
            use_causal_mask=use_causal_mask,
            training=training,
            return_attention_scores=return_attention_scores,
            return_projections=return_projections,
        )
        q, k, v, mask = self._inputs(call, query, value, key)
        content = scaled(q, len(self.terms))  # (B, N, T, H)
        lengths = ops.shape(q)[2], ops.shape(k)[2]
        # The table's keys and queries, (N, R, H), and its rows r(i, j) by offset, (T + S - 1,).
        kr, qr, rows = self._positions(position_table, *lengths, training)
        scores = Scores(content, k, has_content="c2c" in self.terms)  # c2c: q_i . k_j
        if "c2p" in self.terms:  # c2p: q_i . k^r_{r(i, j)}
            scores += content_to_position(content, kr, rows)
        if "p2c" in self.terms:  # p2c: k_j . q^r_{r(i, j)}
            scores += position_to_content(k, qr, rows)
        if "p2p" in self.terms:  # p2p: q^r_{r(i, j)} . k^r_{r(i, j)}
            product = call.product("p2p", _row_products, position_query=qr, position_key=kr)
            scores += position_to_position(content, product, rows)
        output, scores = self._attend(call, scores, v, mask)
        return call.results(output, scores, q, k, v)

    def rounded_tensors(self):
        rounded = super().rounded_tensors()
        if self.joint_projection:
            rounded |= {"key": "joint.outputs", "value": "joint.outputs"}
            rounded |= {"value": None} if self.use_bias else {}
        rounded |= {term: None for term in ("c2p", "p2c") if term in self.terms}
        return rounded | ({"position_query": None} if {"p2c", "p2p"} & {*self.terms} else {})

    def _project(self, query, key, value):
        project = project_jointly if self.joint_projection else BaseAttention._project
        return project(self, query, key, value)

    def _positions(self, table, length, source_length, training):
        """Project the table to keys and queries, scaled, as far as the terms need them.

        With known lengths, and in training, only the rows in use are projected. With unknown
        lengths at inference all rows are, so that an export folds their projections into
        constants.

        Returns:
            The keys (N, R, H), the queries (N, R, H), and the (T + S - 1,) rows for each offset
            of a key from a query.
        """
        if self.terms == ("c2c",):
            return None, None, None
        weight = self.own_table and self.own_table(self.own_table.table)
        table = select_weight("position_table", table, weight)
        rows = offset_rows(self.rows_by_distance, length, source_length)
        if isinstance(rows, np.ndarray) or training:
            table, rows = used_rows(table, rows)
        table = self.position_dropout_layer(table, training=training)
        kr = qr = None
        if "c2p" in self.terms or "p2p" in self.terms:
            project = self.key if self.share_att_key else self.position_key
            kr = split_table(project(table), self.num_heads)
        if "p2c" in self.terms or "p2p" in self.terms:
            project = self.query if self.share_att_key else self.position_query
            qr = scaled(split_table(project(table), self.num_heads), len(self.terms))
        return kr, qr, rows


def _row_products(queries, keys):
    """Compute the product of each row's query and key, (N, R, 1)."""
    return ops.sum(queries * keys, axis=-1, keepdims=True)
