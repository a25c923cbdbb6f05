"""One kernel for query, key and value, head by head (DeBERTa v1)."""

from keras import ops

from tfnlp.functional.attention_heads import split_heads


def build_joint_projection(layer, width):
    """Give an attention layer the kernel `joint`, and biases for query and value alone."""
    units = layer.num_heads * layer.key_dim
    layer.joint = layer._projection(3 * units, "joint", (None, None, width), use_bias=False)
    if layer.use_bias:
        layer.query_bias, layer.value_bias = (
            layer._weight("bias", name, (units,), layer.bias_initializer)
            for name in ("query_bias", "value_bias")
        )


def project_jointly(layer, query, key, value):
    """Project query, key and value by parts of one kernel, and split them by head.

    Args:
        layer: an attention layer after `build_joint_projection`.
        query: (B, T, D).
        key: (B, S, D).
        value: (B, S, D).

    Returns:
        (B, N, T, H), (B, N, S, H) and (B, N, S, H).
    """
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
        kernel = ops.reshape(layer.joint.kernel, (-1, num_heads, 3, layer.key_dim))  # (D, N, 3, H)
        q, k, v = (ops.einsum("bld,dnh->bnlh", x, kernel[:, :, i]) for i, x in enumerate(inputs))
    if not layer.use_bias:
        return q, k, v
    shape = (num_heads, 1, layer.key_dim)
    return q + ops.reshape(layer.query_bias, shape), k, v + ops.reshape(layer.value_bias, shape)
