"""One projection to query, key and value of a head, as in DeBERTa v1."""

from keras import ops

from tfnlp.functional.attention_heads import split_heads
from tfnlp.layers.core.base_layer import check_states


def build_joint_projection(layer, query_shape, value_shape=None, key_shape=None):
    """Build the kernel (D, 3 N H), head by head, and the biases of query and value."""
    check_states(query=query_shape, value=value_shape, key=key_shape)
    units, shape = layer.num_heads * layer.key_dim, (None, None, query_shape[-1])
    layer.joint = layer._projection(3 * units, "joint", shape, use_bias=False)
    if layer.use_bias:
        layer.query_bias, layer.value_bias = (
            layer._weight("bias", name, (units,), layer.bias_initializer)
            for name in ("query_bias", "value_bias")
        )


def project_jointly(layer, query, key, value):
    """Project query, key and value by the parts of one kernel, (B, N, L, H) each."""
    inputs, num_heads = (query, key, value), layer.num_heads
    if query is key and key is value:
        joint = split_heads(layer.joint(query), num_heads)  # (B, N, L, 3 H)
        q, k, v = ops.split(joint, 3, axis=-1)
    elif not layer.joint.is_plain:
        # More than a product with the kernel: three times as much, of which a third is used.
        q, k, v = (
            ops.split(split_heads(layer.joint(x), num_heads), 3, axis=-1)[i]
            for i, x in enumerate(inputs)
        )
    else:
        kernel = ops.reshape(layer.joint.kernel, (-1, num_heads, 3, layer.key_dim))
        q, k, v = (ops.einsum("bld,dnh->bnlh", x, kernel[:, :, i]) for i, x in enumerate(inputs))
    if not layer.use_bias:
        return q, k, v
    shape = (num_heads, 1, layer.key_dim)
    q, v = q + ops.reshape(layer.query_bias, shape), v + ops.reshape(layer.value_bias, shape)
    return q, k, v
