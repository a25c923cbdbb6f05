"""Attention of a model to one text: scores, their terms, weights and gradients, by layer and head.

`BaseAttention.observer` gives them as the model runs, for every family alike.
"""

import dataclasses

import numpy as np
import tensorflow as tf
from keras import ops

from tfnlp.functional.attention import Scores, masked_softmax
from tfnlp.functional.attention_heads import scaled
from tfnlp.functional.masks import zero_masked_rows
from tfnlp.inspection.answer_text import answer_text
from tfnlp.inspection.internals import token_texts
from tfnlp.inspection.position_tables import position_tables
from tfnlp.layers import DecoderBlock, DisentangledAttention, RelativeAttention
from tfnlp.layers.attention.base_attention import BaseAttention
from tfnlp.models import config_of, max_positions, reads_choices
from tfnlp.models.text_model import submodel
from tfnlp.text import with_target
from tfnlp.utils.errors import InputError

# Transformer-XL's terms, as the paper letters them; XLNet adds that of the segments.
RELATIVE_TERMS = ("content (a)", "position (b)", "content bias (c)", "position bias (d)")
# Token lists of the rows and the columns of an attention, by the part of an encoder-decoder; its
# decoder reads a token and writes the next.
TRANSLATOR_TOKENS = {
    "encoder": ("source", "source"),
    "decoder": ("target read", "target read"),
    "decoder to source": ("target written", "source"),
}
PARTS = {"cross_attention": "decoder to source", "entity_attention": "entities"}


@dataclasses.dataclass(frozen=True)
class LayerAttention:
    """Attention of one layer, of all its heads; of one of its streams if it has two.

    Args:
        name: such as "layer 1", or "encoder layer 1" of an encoder-decoder.
        stream: "content" or "query" of two streams; "" of one.
        rows, columns: the names of the lists of T and S tokens in `TextAttention.tokens`.
        scores: (N, T, S) float32, before mask and softmax.
        weights: (N, T, S) float32, after them.
        visible: (N, T, S) bool, false where a token must not look.
        terms: {name: (N, T, S)}, whose sum the scores are; empty where they are one product.
        saliency: (N, S) float32, gradient times input: of the prediction by each token's value
            in a head.
    """

    name: str
    stream: str
    rows: str
    columns: str
    scores: np.ndarray
    weights: np.ndarray
    visible: np.ndarray
    terms: dict
    saliency: np.ndarray

    @property
    def shares(self):
        """Share of each term in the variance of the scores of a row, {name: (N,)}.

        That is its covariance with the scores over their variance, so that shares sum to 1, and a
        term that works against the others has a negative one. Hidden places do not count, nor does
        a constant of a row, which changes no weight. All are 0 for scores without variance.
        """
        total = self._centred(self.scores)
        variance = (total * total).sum((1, 2))
        return {
            name: (self._centred(term) * total).sum((1, 2)) / np.where(variance > 0, variance, 1)
            for name, term in self.terms.items()
        }

    def _centred(self, scores):
        counts = np.maximum(self.visible.sum(-1, keepdims=True), 1)
        means = np.where(self.visible, scores, 0).astype("float64").sum(-1, keepdims=True) / counts
        return np.where(self.visible, scores - means, 0)


@dataclasses.dataclass(frozen=True)
class TextAttention:
    """Attention of a model to one text, or a pair of texts.

    Args:
        model: the model's name.
        texts: the text, and its pair or translation if there is one.
        tokens: {name: list of strings}.
        layers: `LayerAttention`s in the order in which they ran.
        saliency: {name of tokens: (L,)}, gradient times input by the vectors of the tokens.
        prediction: what the gradient is of, in words.
        positions: `PositionTable`s.
        answer: the model's, with its probabilities, in words; "" of a head without answers.
    """

    model: str
    texts: tuple
    tokens: dict
    layers: list
    saliency: dict
    prediction: str
    positions: list
    answer: str = ""


def attention_of(model, tokenizer, text, pair=None, labels=None):
    """Run a model on a text and return a `TextAttention`.

    Args:
        model: from `build_model` or `load_model`, with any head. One of a family without attention
            has no layers to show, but gradient times input.
        tokenizer: the model's.
        text: a string.
        pair: the second text; for an encoder-decoder the translation.
        labels: names of the head's classes, as of `read_labels`; their numbers if None.

    Raises:
        InputError: if an encoder-decoder has no translation, or the text more tokens than the
            model has positions.
    """
    inputs, tokens = _inputs(model, tokenizer, text, pair)
    vectors = _token_vectors(model)
    run = submodel(model.input, {"outputs": model.output, "vectors": vectors})
    calls = []
    with tf.GradientTape() as tape:
        # Frozen tables too, which a tape does not watch by itself.
        tape.watch([v.value for v in model.variables if v.dtype.startswith("float")])

        def observe(layer, call, scores, projections, mask):
            tape.watch(projections[-1])
            calls.append((layer, call, scores, projections, mask))

        attentions = [x for x in model._flatten_layers() if isinstance(x, BaseAttention)]
        for layer in attentions:
            layer.observer = observe
        try:
            result = run(inputs, training=False)
        finally:
            for layer in attentions:
                layer.observer = None
        target, prediction = _prediction(result["outputs"])
    values = [projections[-1] for *_, projections, _ in calls]
    *by_values, by_vectors = _times_gradient(tape, target, [*values, result["vectors"]])
    names = _names(model, [layer for layer, *_ in calls])
    layers = [_layer(*each) for each in zip(calls, by_values, names, strict=True)]
    weights = result["outputs"].get("attention_weights")
    if weights is not None:
        layers.append(_recurrent_layer(np.asarray(weights), by_vectors["source"]))
    return TextAttention(
        model=model.name,
        texts=(text,) if pair is None else (text, pair),
        tokens=tokens,
        layers=layers,
        saliency=by_vectors,
        prediction=prediction,
        positions=position_tables(model, max(map(len, tokens.values()))),
        answer=answer_text(model, result["outputs"], labels, tokens.get("tokens")),
    )


def _inputs(model, tokenizer, text, pair):
    """Return a model's inputs for one text, and its lists of tokens by name."""
    if _translates(model):
        inputs, tokens = _translator_inputs(model, tokenizer, text, pair)
    else:
        inputs = tokenizer([text], None if pair is None else [pair])
        tokens = {"tokens": token_texts(tokenizer, inputs["token_ids"][0])}
    most, longest = max_positions(model), max(map(len, tokens.values()))
    if most is not None and longest > most:
        raise InputError(
            f"The text has {longest} tokens, but the model only {most} positions; give a shorter "
            "one."
        )
    inputs = {name: inputs[name] for name in model.input if name in inputs}
    if reads_choices(model):
        inputs = {name: x[:, None] for name, x in inputs.items()}
    if model.head == "permutation_lm":
        # A fixed order, in which every token is predicted.
        order = np.random.default_rng(0).permutation(longest)
        inputs["permutation_order"] = order[None].astype("int32")
        inputs["target_mapping"] = np.eye(longest, dtype="int32")[None]
    if "memory" in model.input:
        config = config_of(model)
        inputs["memory"] = np.zeros((1, config.num_layers, 0, config.hidden_dim), "float32")
    return inputs, tokens


def _translator_inputs(model, tokenizer, text, target):
    if target is None:
        raise InputError(
            f"The model {model.name} is an encoder-decoder; give the translation as the pair."
        )
    config = config_of(model)
    of_target, source_end = with_target(tokenizer, None, config.end_token_id)
    source = tokenizer.encode_closed([text], source_end)[0].token_ids
    written = of_target.encode_closed([target], config.end_token_id)[0].token_ids
    read = [config.start_token_id, *written[:-1]]
    inputs = {
        "encoder_token_ids": np.array([source], "int32"),
        "encoder_padding_mask": np.ones((1, len(source)), "int32"),
        "decoder_token_ids": np.array([read], "int32"),
    }
    tokens = {
        "source": token_texts(tokenizer, source),
        "target read": token_texts(of_target, read),
        "target written": token_texts(of_target, written),
    }
    return inputs, tokens


def _token_vectors(model):
    """Return the symbolic vectors (B, L, D) of the tokens, by the name of their list."""
    vectors = {}
    for layer in model.layers:
        for node in layer._inbound_nodes:
            ids, *_ = node.input_tensors or [None]
            outputs = node.outputs[0] if node.outputs else None
            if ids is None or not ids.dtype.startswith("int") or len(outputs.shape) != 3:
                continue
            if not outputs.dtype.startswith("int") and layer.name != "entity_embeddings":
                sides = {"encoder_token_ids": "source", "decoder_token_ids": "target read"}
                vectors.setdefault(sides.get(ids.name, "tokens"), outputs)
    return vectors


def _prediction(outputs):
    """Return a number that sums up the outputs, and the words for it."""
    names = [name for name in outputs if name.endswith("logits")]
    if names:
        highest = tf.concat([tf.reshape(tf.reduce_max(outputs[n], -1), [-1]) for n in names], 0)
        shown = " and ".join(name.replace("_", " ") for name in names)
        summed = ", summed over the predictions" if len(highest) > 1 else ""
        return tf.reduce_sum(highest), f"the highest of the {shown}{summed}"
    states = outputs["sequence_output"]
    return tf.reduce_sum(states * states) / 2, "half the squared norm of the last states"


def _times_gradient(tape, target, tensors):
    """Return gradient times input of tensors (1, ..., L, D), nested, each as (..., L)."""
    gradients = tape.gradient(target, tensors, unconnected_gradients="zero")

    def times(x, gradient):
        product = tf.cast(gradient, "float32") * tf.cast(x, "float32")
        return np.asarray(tf.reduce_sum(product, -1)[0])

    return tf.nest.map_structure(times, tensors, gradients)


def _layer(observed, saliency, names):
    """Return the `LayerAttention` of one call."""
    layer, call, scores, (query, *_), mask = observed
    total = scores.compute(call.product)
    weights = masked_softmax(total, mask)
    weights = weights if mask is None else zero_masked_rows(weights, mask)
    visible = np.ones((1, 1, 1, 1), bool)
    if mask is not None:
        visible = ops.convert_to_numpy(mask).astype(bool)
        visible = visible if visible.ndim == 4 else visible.reshape(-1, 1, *visible.shape[-2:])
    return LayerAttention(
        **names,
        scores=_numpy(total),
        weights=_numpy(weights),
        visible=np.broadcast_to(visible[0], total.shape[1:]),
        terms={name: _numpy(x) for name, x in _terms(layer, scores, query).items()},
        saliency=saliency,
    )


def _numpy(x):
    """Return the only text's part of (1, N, T, S) as (N, T, S) float32."""
    return np.asarray(ops.convert_to_numpy(x)[0], "float32")


def _terms(layer, scores, query):
    """Return the terms of a layer's scores by name, each (1, N, T, S); {} where there is one."""
    lengths = ops.shape(scores.query)[2], ops.shape(scores.key)[2]
    if isinstance(layer, DisentangledAttention):
        content = {"c2c": Scores(scores.query, scores.key).compute()} if scores.has_content else {}
        return content | {term.name: term.compute(*lengths) for term in scores.terms}
    if not isinstance(layer, RelativeAttention):
        return {}
    # The biases are added to the queries; without them are (a) and (b), and the rest (c) and (d).
    plain = scaled(query)
    position, *segment = scores.terms
    factors = {"position_query": plain, "position_key": position.position_key}
    a = Scores(plain, scores.key).compute()
    b = dataclasses.replace(position, factors=factors).compute(*lengths)
    c = Scores(scores.query, scores.key).compute() - a
    d = position.compute(*lengths) - b
    terms = dict(zip(RELATIVE_TERMS, (a, b, c, d), strict=True))
    return terms | ({"segment": segment[0].compute(*lengths)} if segment else {})


def _names(model, attentions):
    """Yield the name, stream, rows and columns of the `LayerAttention` of each call."""
    parts = {}
    for top in model.layers:
        decodes = isinstance(top, DecoderBlock)
        for layer in top._flatten_layers():
            if isinstance(layer, BaseAttention):
                plain = "decoder" if decodes else "encoder" * _translates(model)
                parts[id(layer)] = PARTS.get(layer.name, plain)
    streams = ("content", "query") if model.head == "permutation_lm" else ("",)
    counts = {}
    for attention in attentions:
        part = parts[id(attention)]
        number, stream = divmod(counts.get(part, 0), len(streams))
        counts[part] = counts.get(part, 0) + 1
        name = f"{part} layer {number + 1}".strip()
        extra = number - config_of(model).num_layers
        if not part and extra >= 0:  # DeBERTa's enhanced mask decoder
            name = f"mask decoder pass {extra + 1}"
        rows, columns = TRANSLATOR_TOKENS[part] if _translates(model) else ("tokens", "tokens")
        yield {"name": name, "stream": streams[stream], "rows": rows, "columns": columns}


def _translates(model):
    return model.head == "sequence_to_sequence"


def _recurrent_layer(weights, saliency):
    """Return the alignment (1, T, S) of a recurrent translator; its scores but for row constants.

    Its values are the source's states, so gradient times input is that of the source's vectors.
    """
    names = ("alignment", "", *TRANSLATOR_TOKENS["decoder to source"])
    scores = np.log(np.maximum(weights, 1e-30)).astype("float32")
    visible = np.ones(weights.shape, bool)
    return LayerAttention(*names, scores, weights, visible, {}, saliency[None])
