"""What a model does inside, as numbers: alignments, gradients over time, activations."""

import numpy as np
import tensorflow as tf
from keras import ops

from tfnlp.errors import InputError
from tfnlp.models import RecurrentConfig, build_model, config_of
from tfnlp.models.recurrent_translator import output_logits
from tfnlp.objectives.frame import Frame

# As many ids are read before one to see whether a space is between.
CONTEXT = 8
# What stands for bytes that are no whole character.
BROKEN = "\ufffd"


def text_ids(tokenizer, text):
    """The ids of a text, a list, without what frames one."""
    before, after = Frame.of(tokenizer).single
    ids = list(tokenizer.encode([text])[0].token_ids)
    return ids[len(before) : len(ids) - len(after)]


def token_texts(tokenizer, token_ids):
    """Each id's text by itself; special tokens, and parts of a character, by their names."""
    texts = ((i, tokenizer.decode([i])) for i in map(int, token_ids))
    return [text if text and BROKEN not in text else tokenizer.token(i) for i, text in texts]


def running_texts(tokenizer, token_ids):
    """What each id adds to the text before it, its space too; a special token by its name.

    A character of several tokens is what the last of them adds.
    """
    ids, special = [int(i) for i in token_ids], set(tokenizer.special_token_ids)
    texts, begin = [], 0
    for place, i in enumerate(ids):
        if i in special:
            texts.append(tokenizer.token(i))
            begin = place + 1
            continue
        near = ids[max(begin, place - CONTEXT) : place]
        before, whole = (tokenizer.decode(row).rstrip(BROKEN) for row in (near, [*near, i]))
        texts.append(whole[len(before) :] if whole.startswith(before) else tokenizer.decode([i]))
    return texts


def windows(token_ids, length, most):
    """The first pieces of a text, one after another, as `gradient_norms` takes them.

    Args:
        token_ids: of the text, a list.
        length: the tokens that are read in each.
        most: how many pieces at most.

    Returns:
        (B, length + 1) int32.

    Raises:
        InputError: for a text that is shorter than a piece.
    """
    count = min(most, len(token_ids) // (length + 1))
    if not count:
        raise InputError(
            f"The text has {len(token_ids)} tokens, fewer than the {length + 1} of a piece of "
            f"length={length}; give more text, or a shorter length."
        )
    return np.reshape(token_ids[: count * (length + 1)], (count, length + 1)).astype("int32")


def check_attends(model):
    """Raises an InputError for a model without attention to a source."""
    config = config_of(model)
    if model.head != "sequence_to_sequence" or getattr(config, "attention", "") is None:
        raise InputError(
            f"The model {model.name} attends to no source; give an encoder-decoder with attention."
        )


def alignments(model, source_ids, target_ids):
    """How much of each source token is behind each target token.

    Bahdanau et al. 2015, section 5.2.1 and figure 3.

    Args:
        model: an encoder-decoder with attention, with the head "sequence_to_sequence".
        source_ids: the source's ids, a list, as the model reads them.
        target_ids: the target's ids, a list, without start and end.

    Returns:
        {name: weights (T + 1, S)}: of a recurrent model "attention", of a transformer "layer 1,
        head 1" and so on. Row t is of the target's token t, the last of the end token.

    Raises:
        InputError: for a model without attention to a source, and an empty source.
    """
    check_attends(model)
    config = config_of(model)
    if not len(source_ids):
        raise InputError("source_ids has no token; give at least one.")
    source = np.array([source_ids], "int32")
    inputs = {
        "encoder_token_ids": source,
        "encoder_padding_mask": np.ones_like(source),
        "decoder_token_ids": np.array([[config.start_token_id, *target_ids]], "int32"),
    }
    if config.recurrent:
        return {"attention": np.asarray(model(inputs)["attention_weights"][0])}
    scored = build_model(config, model.head, attention_scores=True)
    scored.set_weights(model.get_weights())
    return {
        f"layer {layer}, head {head}": np.asarray(ops.softmax(of_head))
        for layer, scores in enumerate(scored(inputs)["cross_attention_scores"], 1)
        for head, of_head in enumerate(scores[0], 1)
    }


def states_over_text(model, token_ids):
    """The states of a recurrent language model after each token.

    Args:
        model: of a `RecurrentConfig`, with the head "causal_lm".
        token_ids: (B, L) integers.

    Returns:
        (B, L, num_layers, S, D) float32; of the S states of each layer the first is its output h,
        an LSTM's second c.

    Raises:
        InputError: for another model, and no token.
    """
    _, states, _ = _read(model, token_ids)
    return np.stack([np.stack(of_token, axis=1) for of_token in states], axis=1)


def activations(model, token_ids, layer=None):
    """What each cell of a layer holds after each token of a text, from -1 to 1.

    Karpathy et al. 2015, 'Visualizing and Understanding Recurrent Networks', section 4.2: of an
    LSTM tanh(c), of the others h.

    Args:
        model: of a `RecurrentConfig`, with the head "causal_lm".
        token_ids: a list of ids.
        layer: which, from 0 on; the last where None.

    Returns:
        (L, D) float32.

    Raises:
        InputError: for another model, no token, and a layer that there is not.
    """
    states = states_over_text(model, [token_ids])[0]
    layers = states.shape[1]
    layer = layers - 1 if layer is None else layer
    if not 0 <= layer < layers:
        raise InputError(f"layer={layer} must be from 0 to {layers - 1}.")
    states = states[:, layer]
    return np.tanh(states[:, 1]) if states.shape[1] == 2 else states[:, 0]


def gradient_norms(model, token_ids):
    """How far back the loss of a text's last token reaches.

    Pascanu et al. 2013, 'On the difficulty of training recurrent neural networks', eq. 3 to 5:
    the norm of the gradient of the last token's loss by the state after each token before it, of
    all layers together (h, and of an LSTM c), when all later tokens are as they are.

    Args:
        model: of a `RecurrentConfig`, with the head "causal_lm".
        token_ids: (B, L + 1) integers; the last of each text is predicted from the others.

    Returns:
        (L,) float64, means over the texts: the first of the state after the first token, the last
        of that from which the last token is predicted.

    Raises:
        InputError: for another model, and fewer than 2 tokens.
    """
    token_ids = np.asarray(token_ids, "int32")
    if token_ids.ndim != 2 or token_ids.shape[1] < 2:
        raise InputError(
            f"token_ids has shape {token_ids.shape}; give texts of one length, 2 or more."
        )
    with tf.GradientTape() as tape:
        logits, states, watched = _read(model, token_ids[:, :-1])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(token_ids[:, -1], logits)
    found = tape.gradient(losses, watched, unconnected_gradients="zero")
    squares = [np.sum(np.square(np.asarray(x, "float64")), axis=1) for x in found]
    of_token = np.reshape(squares, (len(states), -1, len(token_ids))).sum(axis=1)  # (L, B)
    return np.sqrt(of_token).mean(axis=1)


def _read(model, token_ids):
    """Reads texts (B, L) token by token.

    Returns:
        The logits (B, V) after the last token; for each token the states (B, S, D) of each layer;
        and to take gradients by, the same states one by one: copies, through which all that
        comes later reads them, and nothing else.
    """
    config = config_of(model)
    if not isinstance(config, RecurrentConfig) or model.head != "causal_lm":
        raise InputError(
            f"The model {model.name} is no recurrent language model; give one, of the family rnn, "
            "lstm or gru."
        )
    token_ids = np.asarray(token_ids, "int32")
    if not token_ids.size:
        raise InputError("token_ids has no token; give at least one.")
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
