"""A model's outputs for every encoding, in their own order."""

import numpy as np
import tensorflow as tf

from tfnlp.models import check_lengths

# What a position after a text's end has for a logit.
TOKEN_OUTPUTS = ("start_logits", "end_logits")


def predict(model, batches, outputs=("logits",)):
    """Runs a model over batches, once; `predictor` runs it again and again."""
    return predictor(model, outputs)(batches)


def predictor(model, outputs=("logits",)):
    """A function that runs a model over batches; its graph is traced but once.

    Args:
        model: gives a dict.
        outputs: the names of the outputs to keep.

    Returns:
        A function from `LengthBatches` to a dict of lists with an array for each encoding:
        (C,), (choices,), or for outputs of each token (L, ...), cut to the encoding's own
        length.
    """

    @tf.function(reduce_retracing=True)
    def forward(inputs):
        found = model(inputs, training=False)
        return {key: tf.cast(found[key], "float32") for key in outputs}

    def run(batches):
        check_lengths(batches, model)
        results = {key: [None] * len(batches.encodings) for key in outputs}
        for indices in batches.order():
            inputs = batches.batch(indices)[0]
            for key, value in forward(inputs).items():
                value = np.asarray(value)
                tokens = key in TOKEN_OUTPUTS or value.ndim == 3
                for row, i in enumerate(indices):
                    results[key][i] = value[row, : batches.lengths[i]] if tokens else value[row]
        return results

    return run
