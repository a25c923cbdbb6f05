"""Recurrent networks in NumPy, token by token, from a model's weights by their paths."""

import numpy as np

CELL_NAMES = {"rnn": "simple_rnn_cell", "lstm": "lstm_cell", "gru": "gru_cell"}


def weights_of(model):
    return {w.path: np.asarray(w, "float64") for w in model.weights}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def cell_step(cell, weights, path, x, states):
    """The states after one token, a list; the first is the output."""
    names = ("kernel", "recurrent_kernel", "bias")
    kernel, recurrent, bias = (weights[f"{path}/{name}"] for name in names)
    if cell == "rnn":
        return [np.tanh(x @ kernel + states[0] @ recurrent + bias)]
    if cell == "lstm":
        h, c = states
        i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return [sigmoid(o) * np.tanh(c), c]
    (h,) = states
    z, r, n = np.split(x @ kernel + bias[0], 3)
    z_h, r_h, n_h = np.split(h @ recurrent + bias[1], 3)
    z, r = sigmoid(z + z_h), sigmoid(r + r_h)
    return [z * h + (1 - z) * np.tanh(n + r * n_h)]


def read(config, weights, x, width, prefix=""):
    """The upper layer's output (L, D) of embeddings (L, D), and each layer's last states."""
    count, last = 2 if config.cell == "lstm" else 1, []
    for i in range(config.num_layers):
        outputs, ends = [], []
        for direction in config.directions:
            order = range(len(x))[:: -1 if direction == "backward" else 1]
            states, output = [np.zeros(width)] * count, np.zeros((len(x), width))
            path = f"{prefix}{direction}_{i}/{CELL_NAMES[config.cell]}"
            for t in order:
                states = cell_step(config.cell, weights, path, x[t], states)
                output[t] = states[0]
            outputs.append(output)
            ends.append(states)
        x = np.concatenate(outputs, axis=1)
        last.append([np.concatenate(parts) for parts in zip(*ends, strict=True)])
    return x, last


def next_logits(config, weights, x):
    """The logits (L, V) of a language model's outputs (L, D)."""
    table = weights["embeddings/token_table"].T
    logits = x @ (table if config.tie_embeddings else weights["lm_output/kernel"])
    return logits + weights["lm_bias/bias"] if config.output_bias else logits


def attend(config, weights, h, source):
    """The weights of a state h (D,) over the source's states (S, D)."""
    path = "decoder/attention"
    if config.attention == "dot":
        scores = [h @ s for s in source]
    elif config.attention == "general":
        scores = [h @ (s @ weights[f"{path}/key/kernel"]) for s in source]
    else:
        query, key = weights[f"{path}/query/kernel"], weights[f"{path}/key/kernel"]
        direction = weights[f"{path}/direction/kernel"][:, 0]
        scores = [direction @ np.tanh(h @ query + s @ key) for s in source]
    return softmax(np.array(scores))


def translate(model, source_ids, target_ids):
    """The logits (T, V) and the attention weights (T, S) of one pair without padding."""
    config, weights = model.text_config, weights_of(model)
    width = config.hidden_dim // len(config.directions)
    table = weights["embeddings/token_table"]
    source_table = weights.get("encoder_embeddings/token_table", table)
    source, last = read(config, weights, source_table[source_ids], width, "encoder_")
    states = []
    for i, of_layer in enumerate(last):
        if config.bidirectional:
            of_layer = [
                x @ weights[f"bridge_{i}_{k}/kernel"] + weights[f"bridge_{i}_{k}/bias"]
                for k, x in enumerate(of_layer)
            ]
            of_layer[0] = np.tanh(of_layer[0])
        states.append(of_layer)
    logits, all_weights, output = [], [], np.zeros(config.hidden_dim)
    for token in target_ids:
        x = table[token]
        if config.attention is not None and config.input_feeding:
            x = np.concatenate([x, output])
        for i in range(config.num_layers):
            states[i] = cell_step(config.cell, weights, f"decoder/cell_{i}", x, states[i])
            x = states[i][0]
        output = x
        if config.attention is not None:
            seen = attend(config, weights, x, source)
            all_weights.append(seen)
            output = np.tanh(
                np.concatenate([seen @ source, x]) @ weights["decoder/combine/kernel"]
            )
        matrix = table.T if config.tie_embeddings else weights["lm_output/kernel"]
        logits.append(output @ matrix)
    return np.array(logits), np.array(all_weights)
