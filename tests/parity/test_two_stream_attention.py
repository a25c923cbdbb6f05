"""TwoStreamAttention against XLNet of `transformers` on the same weights."""

import numpy as np
import pytest
import tensorflow as tf

from tests.parity.compare import check_gradients, near, padding
from tfnlp.layers import TwoStreamAttention, permutation_masks, segment_mask, with_memory

torch = pytest.importorskip("torch", reason="parity needs .[parity]")
transformers = pytest.importorskip("transformers", reason="parity needs .[parity]")

D, N, H = 24, 3, 8


def pair(clamp_length=None):
    config = transformers.XLNetConfig(
        vocab_size=20,
        d_model=D,
        n_layer=1,
        n_head=N,
        d_inner=16,
        dropout=0.0,
        clamp_len=clamp_length or -1,
    )
    model = transformers.XLNetModel(config).eval()
    theirs = model.layer[0].rel_attn
    torch.manual_seed(0)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    theirs.layer_norm = torch.nn.Identity()
    ours = TwoStreamAttention(N, H, clamp_length=clamp_length)
    ours.build((None, None, D))
    named = []
    for dense, parameter in (
        (ours.query, theirs.q),
        (ours.key, theirs.k),
        (ours.value, theirs.v),
        (ours.position, theirs.r),
    ):
        dense.kernel.assign(parameter.detach().numpy().reshape(D, N * H))
        named.append((dense.kernel, parameter, False))
    ours.output_dense.kernel.assign(theirs.o.detach().numpy().reshape(D, N * H).T)
    named.append((ours.output_dense.kernel, theirs.o, True))
    for weight, parameter in (
        (ours.content_bias, theirs.r_w_bias),
        (ours.position_bias, theirs.r_r_bias),
        (ours.segment_bias, theirs.r_s_bias),
        (ours.segment_table, theirs.seg_embed),
    ):
        weight.assign(parameter.detach().numpy())
        named.append((weight, parameter, False))
    return ours, theirs, model, named


def inputs(length, memory_length, predictions, masked, seed=0):
    rng = np.random.default_rng(seed)
    x = {"content_stream": rng.normal(size=(2, length, D)).astype("float32")}
    if predictions is not None:
        x["query_stream"] = rng.normal(size=(2, predictions or length, D)).astype("float32")
    if predictions:
        mapping = np.zeros((2, predictions, length), "float32")
        for row in mapping:
            row[range(predictions), rng.permutation(length)[:predictions]] = 1
        x["target_mapping"] = mapping
    if memory_length:
        x["memory"] = rng.normal(size=(2, memory_length, D)).astype("float32")
    segments = rng.integers(0, 2, (2, length))
    # The memory counts as segment 0, as in transformers.
    keys = np.concatenate([np.zeros((2, memory_length), int), segments], axis=1)
    x["segment_mask"] = np.asarray(segment_mask(segments, keys))
    order = np.stack([rng.permutation(length) for _ in range(2)])
    content, query = permutation_masks(order)
    real = padding(2, length, masked, seed)[:, None, :]
    x["attention_mask"] = np.asarray(with_memory(content & real, memory_length))
    x["query_attention_mask"] = np.asarray(with_memory(query & real, memory_length))
    return x


def run_theirs(model, theirs, x):
    def time_first(name, grad=True):
        if name not in x:
            return None
        value = torch.tensor(x[name]).transpose(0, 1).contiguous()
        return value.requires_grad_(grad)

    length = x["content_stream"].shape[1]
    source = length + (x["memory"].shape[1] if "memory" in x else 0)
    mapping = x.get("target_mapping")
    h, g = time_first("content_stream"), time_first("query_stream")
    segments = torch.nn.functional.one_hot(torch.tensor(~x["segment_mask"]).long(), 2)

    def mask(name):
        return torch.tensor(~x[name]).permute(1, 2, 0)[..., None].float()

    output_h, output_g, weights = theirs(
        h,
        g,
        mask("attention_mask"),
        mask("query_attention_mask"),
        model.relative_positional_encoding(length, source, bsz=2),
        segments.permute(1, 2, 0, 3).float(),
        mems=time_first("memory", False),
        target_mapping=None if mapping is None else torch.tensor(mapping).permute(1, 2, 0),
        output_attentions=True,
    )
    # Their module adds the residual.
    content = (output_h - h).transpose(0, 1)
    query = None if g is None else (output_g - g).transpose(0, 1)
    weights = weights if isinstance(weights, tuple) else (weights, None)
    return h, g, content, query, [w if w is None else w.permute(2, 3, 0, 1) for w in weights]


@pytest.mark.parametrize("predictions", [None, 0, 1], ids=["content", "full", "partial"])
@pytest.mark.parametrize(
    ("length", "memory_length", "masked"),
    [(1, 0, False), (2, 5, True), (7, 5, False), (7, 0, True), (128, 5, True)],
)
def test_forward_and_gradients(length, predictions, memory_length, masked):
    ours, theirs, model, named = pair(clamp_length=6 if memory_length else None)
    x = inputs(length, memory_length, predictions, masked)
    h, g, content, query, weights = run_theirs(model, theirs, x)
    tensors = {key: tf.constant(value) for key, value in x.items()}
    rng = np.random.default_rng(1)
    # Where a query may see nothing transformers attends to all alike; we give zeros.
    seen = {
        "content": x["attention_mask"].any(-1, keepdims=True),
        "query": x["query_attention_mask"].any(-1, keepdims=True),
    }
    if predictions:
        seen["query"] = np.matmul(x["target_mapping"], seen["query"]) > 0
    pull = [rng.normal(size=x["content_stream"].shape).astype("float32") * seen["content"]]
    if query is not None:
        pull.append(rng.normal(size=tuple(query.shape)).astype("float32") * seen["query"])
    with tf.GradientTape() as tape:
        tape.watch(tensors["content_stream"])
        if "query_stream" in tensors:
            tape.watch(tensors["query_stream"])
        found, scores = ours(**tensors, return_attention_scores=True)
        outputs = [found] if query is None else list(found)
        loss = tf.add_n([tf.reduce_sum(o * p) for o, p in zip(outputs, pull, strict=True)])
    near(outputs[0] * seen["content"], content.detach().numpy() * seen["content"], 1e-5)
    if query is not None:
        near(outputs[1] * seen["query"], query.detach().numpy() * seen["query"], 1e-5)
    scores = [scores] if query is None else scores
    for s, expected, name in zip(
        scores, weights, ("attention_mask", "query_attention_mask"), strict=False
    ):
        allowed = x[name][:, None]
        p = tf.nn.softmax(s + np.where(allowed, 0, -1e9)) * allowed
        near(p, expected.detach().numpy() * allowed, 1e-5)
    total = sum(
        (o * torch.tensor(p)).sum()
        for o, p in zip([content, query], pull, strict=False)
        if o is not None
    )
    total.backward()
    named = [
        (v, p.grad.numpy().reshape(D, N * H) if p.ndim == 3 and v.ndim == 2 else p.grad, t)
        for v, p, t in named
    ]
    named.append((tensors["content_stream"], h.grad.transpose(0, 1), False))
    if g is not None:
        named.append((tensors["query_stream"], g.grad.transpose(0, 1), False))
    check_gradients(tape, loss, named)
