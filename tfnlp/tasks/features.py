"""Contextual embeddings of texts by layer (Devlin et al. 2019, section 5.3, table 7)."""

import tensorflow as tf

from tfnlp.functional.masks import masked_mean
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar

# Selections from the hidden states of all layers, a list of (B, L, D).
LAYERS = {
    "last": lambda states: states[-1],
    "second_to_last": lambda states: states[-2],
    "sum_last_four": lambda states: sum(states[-4:]),
    "concat_last_four": lambda states: tf.concat(states[-4:], axis=-1),
}
POOLINGS = ("mean", "first", "none")


def extract_features(model, batches, layers="last", pooling="mean"):
    """Compute the features of each text, in the original order.

    Args:
        model: an encoder with the output `hidden_states`.
        batches: `LengthBatches`.
        layers: one of `LAYERS`.
        pooling: "mean" over real tokens, "first" token, or "none" for a row for each token.

    Returns:
        A list of arrays, (D,) each, or (L, D) without pooling; D is four times as large for
        "concat_last_four".

    Raises:
        InputError: if the model has fewer layers than requested.
    """
    if "four" in layers and model.text_config.num_layers < 4:
        raise InputError(
            f"layers={layers} needs 4 layers, but the model has {model.text_config.num_layers}."
        )
    signature = {name: tf.TensorSpec(x.shape, x.dtype) for name, x in model.input.items()}

    @tf.function(input_signature=[signature])
    def forward(inputs):
        x = tf.cast(LAYERS[layers](model(inputs, training=False)["hidden_states"]), "float32")
        if pooling == "first":
            return x[:, 0]
        if pooling == "none":
            return x
        return masked_mean(x, inputs["padding_mask"])

    features = [None] * len(batches.encodings)
    for indices in progress_bar(batches.batch_indices(), desc="extracting", unit="batch"):
        rows = forward(batches.batch(indices)[0]).numpy()
        for row, i in zip(rows, indices, strict=True):
            features[i] = row[: batches.lengths[i]] if pooling == "none" else row
    return features
