"""A model's outputs for texts, in their own order."""

import numpy as np
import tensorflow as tf
from absl import logging

from tfnlp.errors import InputError
from tfnlp.models import check_lengths
from tfnlp.text import LengthBatches

# What a position after a text's end has for a logit.
TOKEN_OUTPUTS = ("start_logits", "end_logits")


def predict(
    model, tokenizer, texts, pairs=None, max_length=None, batch_size=32, outputs=("logits",)
):
    """What a model says of texts, or of pairs of texts.

    Args:
        model: gives a dict, as those of `tfnlp.checkpoints.load_model` do.
        tokenizer: the model's, from `tfnlp.text.load_tokenizer`.
        texts: a list of strings.
        pairs: the second texts, one for each; or None.
        max_length: the most tokens to read of a text; as many as the model has positions for
            where None. How many texts were cut is logged.
        batch_size: texts in a batch; those of like length are run together.
        outputs: the names of the outputs to give.

    Returns:
        {name: array (texts, ...)}, in the texts' order; of outputs for each token a list of
        arrays (L, ...), one for each text.

    Raises:
        InputError: if a text is not a string, or the model has no such output.
    """
    unknown = set(outputs) - set(model.output)
    if unknown:
        raise InputError(
            f"outputs={sorted(unknown)} are none of the model's ({', '.join(model.output)})."
        )
    if max_length is None:
        max_length = model.text_config.max_length
    encodings = tokenizer.encode(texts, pairs, max_length)
    if encodings.cut.any():
        logging.warning(
            "%d of %d texts were cut to max_length=%d tokens.",
            encodings.cut.sum(),
            len(encodings),
            max_length,
        )
    batches = LengthBatches(encodings, batch_size, pad_token_id=tokenizer.pad_token_id)
    found = predict_batches(model, batches, outputs)
    if not len(encodings):  # no row to tell the shape from
        shapes = {key: model.output[key].shape for key in outputs}
        return {
            key: np.zeros((0, shape[-1] or 0), "float32")
            if len(shape) == 2 and key not in TOKEN_OUTPUTS
            else []
            for key, shape in shapes.items()
        }
    return {
        key: np.stack(rows) if rows[0].ndim == 1 and key not in TOKEN_OUTPUTS else rows
        for key, rows in found.items()
    }


def predict_batches(model, batches, outputs=("logits",)):
    """Runs a model over `LengthBatches`, once; `predictor` runs it again and again."""
    return predictor(model, outputs)(batches)


def input_signature(model):
    """The `tf.TensorSpec` of each input of a model, of any batch and length.

    By it a graph is traced once for all batches.
    """
    return {name: tf.TensorSpec(x.shape, x.dtype) for name, x in model.input.items()}


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

    @tf.function(input_signature=[input_signature(model)])
    def forward(inputs):
        return _outputs(model, inputs, outputs)

    def run(batches):
        check_lengths(batches, model)
        results = {key: [None] * len(batches.encodings) for key in outputs}
        for indices in batches.order():
            _keep_rows(results, forward(batches.batch(indices)[0]), indices, batches.lengths)
        return results

    return run


def evaluator(model, task, batches):
    """A function that runs a model over labelled batches; its graph is traced but once.

    Args:
        model: gives a dict.
        task: see `tfnlp.tasks`.
        batches: `LengthBatches`.

    Returns:
        A function without arguments, which gives the outputs as that of `predictor` does, and
        the task's loss, a float: the mean over batches by their examples, as Keras has it.
    """
    signature = [input_signature(model), batches.signature()[1]]

    @tf.function(input_signature=signature)
    def forward(inputs, labels):
        outputs = _outputs(model, inputs, task.outputs)
        return outputs, task.loss(labels, outputs)

    def run():
        check_lengths(batches, model)
        results = {key: [None] * len(batches.encodings) for key in task.outputs}
        total = 0.0
        for indices in batches.order():
            outputs, loss = forward(*batches.batch(indices))
            _keep_rows(results, outputs, indices, batches.lengths)
            total += float(loss) * len(indices)
        return results, total / len(batches.encodings)

    return run


def _outputs(model, inputs, names):
    found = model(inputs, training=False)
    return {key: tf.cast(found[key], "float32") for key in names}


def _keep_rows(results, outputs, indices, lengths):
    """Write the rows of a batch's outputs into {name: list}, those of tokens without padding."""
    for key, value in outputs.items():
        value = np.asarray(value)
        tokens = key in TOKEN_OUTPUTS or value.ndim == 3
        for row, i in enumerate(indices):
            results[key][i] = value[row, : lengths[i]] if tokens else value[row]
