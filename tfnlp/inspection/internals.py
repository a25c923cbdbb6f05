"""Model internals as arrays: alignments, activations, and gradient norms over time."""

import numpy as np
import tensorflow as tf
from keras import ops

from tfnlp.layers.core.merged_weights import merged_weights
from tfnlp.models import RecurrentConfig, build_model, config_of
from tfnlp.models.recurrent_translator import output_logits
from tfnlp.utils.errors import InputError

# Number of preceding ids that are decoded with an id, to see whether a space precedes it.
CONTEXT = 8
# Replacement character for bytes that are no whole character.
BROKEN = "\ufffd"


def token_texts(tokenizer, token_ids):
    """Return the text of each id alone; special tokens and parts of characters by their names."""
    texts = ((i, tokenizer.decode([i])) for i in map(int, token_ids))
    return [text if text and BROKEN not in text else tokenizer.token(i) for i, text in texts]


def running_texts(tokenizer, token_ids):
    """Return the text that each id adds, with its space; special tokens by their names.

    A character of several tokens is added by its last token.
    """
    ids, special = [int(i) for i in token_ids], set(tokenizer.special_token_ids)
    texts, begin = [], 0
    for place, i in enumerate(ids):
        if i in special:
            texts.append(tokenizer.token(i))
            begin = place + 1
            continue
        near = ids[max(begin, place - CONTEXT) : place]
        context, text = (tokenizer.decode(row).rstrip(BROKEN) for row in (near, [*near, i]))
        texts.append(text[len(context) :] if text.startswith(context) else tokenizer.decode([i]))
    return texts


def windows(token_ids, length, most):
    """Return the first windows of a text, at most `most`, as `gradient_norms` takes them.

    Each has `length` tokens and the one after: (B, length + 1) int32.

    Raises:
        InputError: if the text is shorter than a window.
    """
    count = min(most, len(token_ids) // (length + 1))
    if not count:
        raise InputError(
            f"The text has {len(token_ids)} tokens, fewer than the {length + 1} of a window of "
            f"length={length}; give more text, or a shorter length."
        )
    return np.reshape(token_ids[: count * (length + 1)], (count, length + 1)).astype("int32")


def check_attends(model):
    """Raise an InputError if a model has no attention to a source."""
    config = config_of(model)
    if model.head != "sequence_to_sequence" or getattr(config, "attention", "") is None:
        raise InputError(
            f"The model {model.name} has no attention to a source; give an encoder-decoder with "
            "attention."
        )


def alignments(model, source_ids, target_ids):
    """Return the attention weights of each target token over the source tokens.

    Bahdanau et al. 2015, section 5.2.1 and figure 3.

    Args:
        model: an encoder-decoder with attention, with the head "sequence_to_sequence".
        source_ids: the source's ids, a list, as the model reads them.
        target_ids: the target's ids, a list, without start and end.

    Returns:
        {name: weights (T + 1, S)}, with the name "attention" for a recurrent model, and "layer 1,
        head 1" and so on for a transformer. Row t belongs to target token t, the last row to the
        end token.

    Raises:
        InputError: if the model has no attention to a source, or a text has more tokens than the
            model has positions.
    """
    check_attends(model)
    config = config_of(model)
    source = np.array([source_ids], "int32")
    inputs = {
        "encoder_token_ids": source,
        "encoder_padding_mask": np.ones_like(source),
        "decoder_token_ids": np.array([[config.start_token_id, *target_ids]], "int32"),
    }
    longest = max(source.shape[1], inputs["decoder_token_ids"].shape[1])
    if config.max_length is not None and longest > config.max_length:
        raise InputError(
            f"The source or the target has {longest} tokens, but the model has only "
            f"{config.max_length} positions; give a shorter one."
        )
    if config.recurrent:
        return {"attention": np.asarray(model(inputs)["attention_weights"][0])}
    scored = build_model(config, model.head, attention_scores=True)
    scored.set_weights([*merged_weights(model).values()])
    return {
        f"layer {layer}, head {head}": np.asarray(ops.softmax(of_head))
        for layer, scores in enumerate(scored(inputs)["cross_attention_scores"], 1)
        for head, of_head in enumerate(scores[0], 1)
    }


def states_over_text(model, token_ids):
    """Return the states of a recurrent language model after each token.

    Args:
        model: of a `RecurrentConfig`, with the head "causal_lm".
        token_ids: (B, L) integers.

    Returns:
        (B, L, num_layers, S, D) float32. The first of the S states of a layer is its output h, the
        second of an LSTM is c.

    Raises:
        InputError: if the model is another one.
    """
    _, states, _ = _read(model, token_ids)
    return np.stack([np.stack(of_token, axis=1) for of_token in states], axis=1)


def activations(model, token_ids, layer=None):
    """Return the activation of each cell of a layer after each token, from -1 to 1.

    Karpathy et al. 2015, 'Visualizing and Understanding Recurrent Networks', section 4.2: tanh(c)
    of an LSTM, h of the others.

    Args:
        model: of a `RecurrentConfig`, with the head "causal_lm".
        token_ids: a list of ids.
        layer: index of the layer, from 0; the last where None.

    Returns:
        (L, D) float32.

    Raises:
        InputError: if the model is another one, or the layer does not exist.
    """
    states = states_over_text(model, [token_ids])[0]
    layers = states.shape[1]
    layer = layers - 1 if layer is None else layer
    if not 0 <= layer < layers:
        raise InputError(f"layer={layer} must be from 0 to {layers - 1}.")
    states = states[:, layer]
    return np.tanh(states[:, 1]) if states.shape[1] == 2 else states[:, 0]


def gradient_norms(model, token_ids):
    """Return the gradient norms of a text's last loss by the state after each earlier token.

    Pascanu et al. 2013, 'On the difficulty of training recurrent neural networks', eq. 3 to 5. The
    gradient is that of the last token's loss by the state after a token, over all layers together
    (h, and c of an LSTM), with all later tokens fixed.

    Args:
        model: of a `RecurrentConfig`, with the head "causal_lm".
        token_ids: (B, L + 1) integers; the last token of each text is predicted from the others.

    Returns:
        (L,) float64, means over the texts. The first entry belongs to the state after the first
        token, the last to the state that predicts the last token.

    Raises:
        InputError: if the model is another one.
    """
    token_ids = np.asarray(token_ids, "int32")
    with tf.GradientTape() as tape:
        logits, states, watched = _read(model, token_ids[:, :-1])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(token_ids[:, -1], logits)
    gradients = tape.gradient(losses, watched, unconnected_gradients="zero")
    squares = [np.sum(np.square(np.asarray(x, "float64")), axis=1) for x in gradients]
    of_token = np.reshape(squares, (len(states), -1, len(token_ids))).sum(axis=1)  # (L, B)
    return np.sqrt(of_token).mean(axis=1)


def _read(model, token_ids):
    """Run a recurrent language model over texts (B, L) token by token.

    Returns:
        The logits (B, V) after the last token; for each token the states (B, S, D) of each layer;
        and the same states one by one, as the copies that all later steps read, to take gradients
        by.
    """
    config = config_of(model)
    if not isinstance(config, RecurrentConfig) or model.head != "causal_lm":
        raise InputError(
            f"The model {model.name} is no recurrent language model; give one, of the family rnn, "
            "lstm or gru."
        )
    token_ids = np.asarray(token_ids, "int32")
    cells = [model.get_layer(f"forward_{i}").cell for i in range(config.num_layers)]
    embeddings = model.get_layer("embeddings")(token_ids)
    zeros = tf.zeros((len(token_ids), config.hidden_dim))
    now = [[zeros] * config.memory_length for _ in cells]
    states, watched = [], []
    for t in range(token_ids.shape[1]):
        x = embeddings[:, t]
        for i, cell in enumerate(cells):
            x, after = cell(x, now[i])
            now[i] = [tf.identity(state) for state in after]
            watched += now[i]
        states.append([np.stack(of_layer, axis=1) for of_layer in now])
    return output_logits(model, now[-1][0]), states, watched
