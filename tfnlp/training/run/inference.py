"""Inference: a model's outputs for texts, in the order of the texts."""

import dataclasses

import numpy as np
import tensorflow as tf
from absl import logging

from tfnlp.functional.weighted_losses import entry_count
from tfnlp.models import check_lengths, reads_choices, token_axes
from tfnlp.text import LengthBatches
from tfnlp.utils.progress import progress_bar

# Seconds before a progress bar is shown.
PROGRESS_DELAY = 5


def predict(
    model, tokenizer, texts, pairs=None, max_length=None, batch_size=32, outputs=("logits",)
):
    """Return a model's outputs for texts, or for pairs of texts.

    Args:
        model: returns a dict, as the models of `tfnlp.checkpoints.load_model` do.
        tokenizer: the model's, from `tfnlp.text.load_tokenizer`.
        texts: a list of strings.
        pairs: the second texts, one for each; or None.
        max_length: the most tokens of a text; the model's number of positions where None. The
            number of truncated texts is logged.
        batch_size: texts in a batch; texts of similar length share a batch.
        outputs: the names of the outputs to return.

    Returns:
        {name: array (texts, ...)}, in the texts' order. Outputs per token are a list of arrays
        (L, ...), one per text. Outputs per layer, such as `hidden_states` and `attention_scores`,
        are a list per text with an array per layer, (L, D) and (N, L, L). Padding is removed. A
        chooser scores each pair separately: its logits are (texts, 1), and its other outputs have
        a leading axis of 1.

    Raises:
        InputError: if a text is not a string.
        KeyError: if the model lacks an output.
    """
    if max_length is None:
        max_length = model.text_config.max_length
    encodings = tokenizer.encode(texts, pairs, max_length)
    if encodings.truncated.any():
        logging.warning(
            "%d of %d texts were cut to max_length=%d tokens.",
            encodings.truncated.sum(),
            len(encodings),
            max_length,
        )
    if reads_choices(model):  # score each ending separately
        encodings = dataclasses.replace(encodings, choices=1)
    batches = LengthBatches(encodings, batch_size, pad_token_id=tokenizer.pad_token_id)
    rows_by_output = predict_batches(model, batches, outputs)
    return {
        key: rows if _by_token_or_layer(model, key) else _stacked(rows, model.output[key].shape)
        for key, rows in rows_by_output.items()
    }


def _by_token_or_layer(model, output):
    tensor = model.output[output]
    return isinstance(tensor, list | tuple) or bool(token_axes(model, output, tensor))


def _stacked(rows, shape):
    """Return the rows of all texts as an array (texts, ...), also for no texts."""
    sizes = [size or 0 for size in shape[1:]]
    return np.stack(rows) if rows else np.zeros((0, *sizes), "float32")


def predict_batches(model, batches, outputs=("logits",)):
    """Run a model over `LengthBatches` once; use `predictor` for repeated runs."""
    return predictor(model, outputs)(batches)


def input_signature(model):
    """Return the `tf.TensorSpec` of each input of a model, for any batch size and length.

    With it a graph is traced once for all batches.
    """
    return {name: tf.TensorSpec(x.shape, x.dtype) for name, x in model.input.items()}


def predictor(model, outputs=("logits",)):
    """Return a function that runs a model over batches; its graph is traced once.

    Args:
        model: returns a dict.
        outputs: the names of the outputs to keep.

    Returns:
        A function from `LengthBatches` to a dict of lists with an entry per encoding: an array
        (C,) or (choices,); for outputs per token (L, ...), cut to the encoding's length; for
        outputs per layer a list of such arrays. A chooser's outputs except its logits are
        (choices, ...), cut to the longest of an encoding's texts.
    """

    @tf.function(input_signature=[input_signature(model)])
    def forward(inputs):
        return _outputs(model, inputs, outputs)

    def run(batches):
        check_lengths(batches, model)
        results = {key: [None] * len(batches.encodings) for key in outputs}
        bar = {"desc": "predicting", "unit": "batch", "delay": PROGRESS_DELAY, "leave": False}
        for indices in progress_bar(batches.batch_indices(), **bar):
            _keep_rows(
                model, results, forward(batches.batch(indices)[0]), indices, batches.lengths
            )
        return results

    return run


def evaluator(model, task, signature):
    """Return a function that runs a model over labelled batches; its graph is traced once.

    Args:
        model: returns a dict.
        task: see `tfnlp.tasks`.
        signature: of the batches.

    Returns:
        A function from `LengthBatches` with labels. It returns the outputs as in `predictor`, and
        the task's loss, a float: the mean over the entries of all batches, such as tokens or
        examples.
    """

    @tf.function(input_signature=[input_signature(model), signature[1]])
    def forward(inputs, labels):
        outputs = _outputs(model, inputs, task.kind.reads)
        loss = task.loss(labels, outputs)
        rows = tf.shape(tf.nest.flatten(inputs)[0])[0]
        return outputs, loss, tf.cast(entry_count(loss, rows), "float32")

    def run(batches):
        check_lengths(batches, model)
        results = {key: [None] * len(batches.encodings) for key in task.kind.reads}
        total = weight = 0.0
        for indices in batches.batch_indices():
            outputs, loss, entries = forward(*batches.batch(indices))
            _keep_rows(model, results, outputs, indices, batches.lengths)
            total += float(loss) * float(entries)
            weight += float(entries)
        return results, total / weight if weight else 0.0

    return run


def _outputs(model, inputs, names):
    """Return a model's named outputs at inference, in float32."""
    outputs = model(inputs, training=False)
    return tf.nest.map_structure(
        lambda x: tf.cast(x, "float32"), {name: outputs[name] for name in names}
    )


def _keep_rows(model, results, outputs, indices, lengths):
    """Write the rows of a batch into {name: list}; outputs per layer add a list per row."""
    lengths = lengths[indices]
    for name, value in outputs.items():
        tensor = model.output[name]
        if isinstance(value, list | tuple):
            layers = zip(tensor, value, strict=True)
            rows = zip(*(_rows(model, name, *layer, lengths) for layer in layers), strict=True)
            rows = map(list, rows)
        else:
            rows = _rows(model, name, tensor, value, lengths)
        for i, row in zip(indices, rows, strict=True):
            results[name][i] = row


def _rows(model, name, tensor, value, lengths):
    """Yield the rows of a batch's texts, each without padding."""
    value, axes = value.numpy(), token_axes(model, name, tensor)
    if reads_choices(model) and name != "logits":
        value = value.reshape(len(lengths), -1, *value.shape[1:])
        axes = [axis + 1 for axis in axes]
    places = [slice(None)] * (value.ndim - 1)
    for row, length in zip(value, lengths, strict=True):
        for axis in axes:
            places[axis - 1] = slice(length)
        yield row[tuple(places)]
