"""Attention written out one query, key and head at a time, from the papers' formulas."""

import numpy as np


def rand(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def layer_norm(x, epsilon):
    x = x.astype("float64")
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon)


def weight(variable):
    return np.asarray(variable).astype("float64")


def project(dense, x):
    y = x @ weight(dense.kernel)
    return y if dense.bias is None else y + weight(dense.bias)


def attend_by_loops(layer, query, key, value, scores, mask):
    """Softmax over each query's visible keys, then the output projection.

    Args:
        layer: an attention layer with `num_heads` and `output_dense`.
        query, key, value: projected, (B, L, N * H).
        scores: a function of (batch, head, i, j, q_i, k_j).
        mask: (B, T, S) boolean.

    Returns:
        The output and the scores (B, N, T, S).
    """
    batch, length, _ = query.shape
    heads = layer.num_heads
    q, k, v = (x.reshape(*x.shape[:2], heads, -1) for x in (query, key, value))
    found = np.zeros((batch, heads, length, k.shape[1]))
    context = np.zeros((batch, length, heads, v.shape[-1]))
    for b, n, i in np.ndindex(batch, heads, length):
        row = np.array([scores(b, n, i, j, q[b, i, n], k[b, j, n]) for j in range(k.shape[1])])
        found[b, n, i] = row
        seen = mask[b, i]
        if seen.any():
            e = np.exp(row - row[seen].max()) * seen
            context[b, i, n] = (e / e.sum()) @ v[b, :, n]
    return project(layer.output_dense, context.reshape(batch, length, -1)), found


def sinusoid(position, dim):
    """All sines, then all cosines."""
    angles = [position / 10000 ** (2 * n / dim) for n in range(dim // 2)]
    return np.array([np.sin(a) for a in angles] + [np.cos(a) for a in angles])


def relative(layer, x, memory, mask):
    """Transformer-XL's and, without segments, XLNet's content stream."""
    source = x if memory is None else np.concatenate([memory, x], axis=1)
    ahead = source.shape[1] - x.shape[1]
    size = layer.key_dim
    u, v = weight(layer.content_bias), weight(layer.position_bias)
    w = weight(layer.position.kernel).reshape(-1, layer.num_heads, size)

    def scores(b, n, i, j, q, k):
        distance = ahead + i - j
        if layer.clamp_length:
            distance = np.clip(distance, -layer.clamp_length, layer.clamp_length)
        r = sinusoid(distance, x.shape[-1]) @ w[:, n]
        return ((q + u[n]) @ k + (q + v[n]) @ r) / np.sqrt(size)

    q, k, v_ = project(layer.query, x), project(layer.key, source), project(layer.value, source)
    return attend_by_loops(layer, q, k, v_, scores, mask)


def two_streams(layer, stream, content, memory, same_segment, mask):
    """One of XLNet's streams, with segments."""
    source = content if memory is None else np.concatenate([memory, content], axis=1)
    ahead = source.shape[1] - content.shape[1]
    size = layer.key_dim
    u, v, c = (weight(b) for b in (layer.content_bias, layer.position_bias, layer.segment_bias))
    w = weight(layer.position.kernel).reshape(-1, layer.num_heads, size)
    table = weight(layer.segment_table)

    def scores(b, n, i, j, q, k):
        r = sinusoid(ahead + i - j, content.shape[-1]) @ w[:, n]
        s = table[0 if same_segment[b, i, j] else 1, n]
        return ((q + u[n]) @ k + (q + v[n]) @ r + (q + c[n]) @ s) / np.sqrt(size)

    q, k, v_ = (
        project(layer.query, stream),
        project(layer.key, source),
        project(layer.value, source),
    )
    return attend_by_loops(layer, q, k, v_, scores, mask)


def log_bucket(distance, num_buckets, max_distance):
    middle = num_buckets // 2
    if abs(distance) <= middle:
        return distance
    log = np.log(np.float32(abs(distance) / middle)) / np.log(
        np.float32((max_distance - 1) / middle)
    )
    return int(np.sign(distance) * (np.ceil(log * np.float32(middle - 1)) + middle))


def disentangled(layer, x, table, mask):
    """DeBERTa with separate projections, and its terms by flag."""
    size, heads = layer.key_dim, layer.num_heads
    key_of = layer.key if layer.share_att_key else getattr(layer, "position_key", None)
    query_of = layer.query if layer.share_att_key else getattr(layer, "position_query", None)
    split = (-1, heads, size)
    position_key = project(key_of, table).reshape(split) if key_of else None
    position_query = project(query_of, table).reshape(split) if query_of else None
    span = layer.num_buckets or layer.max_distance

    def scores(b, n, i, j, q, k):
        distance = i - j
        if layer.num_buckets:
            distance = log_bucket(distance, layer.num_buckets, layer.max_distance)
        row = min(max(distance + span, 0), 2 * span - 1)
        total = 0.0
        if "c2c" in layer.terms:
            total += q @ k
        if "c2p" in layer.terms:
            total += q @ position_key[row, n]
        if "p2c" in layer.terms:
            total += position_query[row, n] @ k
        if "p2p" in layer.terms:
            total += position_query[row, n] @ position_key[row, n]
        return total / np.sqrt(size * len(layer.terms))

    q, k, v = (project(dense, x) for dense in (layer.query, layer.key, layer.value))
    return attend_by_loops(layer, q, k, v, scores, mask)


def quadratic(layer, image, mask):
    """Cordonnier et al.: scores v . r_d between any two pixels."""
    batch, height, width, channels = image.shape
    pixels = [(y, x) for y in range(height) for x in range(width)]
    flat = image.reshape(batch, -1, channels)
    if layer.value_dim:
        flat = project(layer.value, flat)
    centers, widths = weight(layer.centers), weight(layer.widths)
    heads = []
    scores = np.zeros((layer.num_heads, len(pixels), len(pixels)))
    for n in range(layer.num_heads):
        v = -widths[n] * np.array([1, -2 * centers[n, 0], -2 * centers[n, 1]])
        values = flat
        if layer.value_dim:
            values = flat[..., n * layer.value_dim : (n + 1) * layer.value_dim]
        head = np.zeros((batch, len(pixels), values.shape[-1]))
        for i, (y, x) in enumerate(pixels):
            shifts = [(ky - y, kx - x) for ky, kx in pixels]
            scores[n, i] = [v @ np.array([a * a + b * b, a, b]) for a, b in shifts]
            for b in range(batch):
                seen = mask[b, i]
                if seen.any():
                    e = np.exp(scores[n, i] - scores[n, i][seen].max()) * seen
                    head[b, i] = (e / e.sum()) @ values[b]
        heads.append(head)
    output = project(layer.output_dense, np.concatenate(heads, axis=-1))
    return output.reshape(batch, height, width, -1), scores


def recurrent(layer, query, value, key, mask):
    """Luong's dot and general, Bahdanau's concat."""
    batch, length, _ = query.shape
    scores = np.zeros((batch, length, value.shape[1]))
    context = np.zeros((batch, length, value.shape[2]))
    for b, i in np.ndindex(batch, length):
        for j, h in enumerate(key[b]):
            if layer.score == "dot":
                s = query[b, i] @ h
            elif layer.score == "general":
                s = query[b, i] @ (h @ weight(layer.key.kernel))
            else:
                joint = np.concatenate([weight(layer.query.kernel), weight(layer.key.kernel)])
                s = np.tanh(np.concatenate([query[b, i], h]) @ joint)
                s = s @ weight(layer.direction.kernel)[:, 0]
            scores[b, i, j] = s
        seen = mask[b, i]
        if seen.any():
            e = np.exp(scores[b, i] - scores[b, i][seen].max()) * seen
            context[b, i] = (e / e.sum()) @ value[b]
    return context, scores


def inputs(batch, length, width, source=None, masked=True, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(batch, length, width)).astype("float32")
    mask = np.ones((batch, length, source or length), bool)
    if masked:
        mask = rng.random(mask.shape) < 0.7
        mask[0, 0] = False  # a query that may see nothing
    return x, mask


def randomise(layer, seed=0):
    rng = np.random.default_rng(seed)
    layer.set_weights([rng.normal(size=w.shape, scale=0.5) for w in layer.weights])


def near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max()))
