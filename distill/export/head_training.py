"""Signatures of a .tflite by which a classifier learns on the device: its last layer alone.

The weights are inputs and outputs, so that the file has no variables and the app keeps them.
"""

import tensorflow as tf

from distill.runtime.head_learner import FEATURES, PROBABILITY, START, STEP
from tfnlp.models import submodel
from tfnlp.tasks.kinds import CLASSIFIER
from tfnlp.utils.errors import InputError


def check_trainable_head(kind, options, model):
    """Raise an InputError for a model without a single dense layer to train, or such options."""
    if kind != CLASSIFIER:
        raise InputError(
            f"trainable_head=True is for a classifier of one label, and the file is of the kind "
            f"{kind}."
        )
    if options.tokenizer_in_graph or options.fixed_lengths:
        raise InputError(
            "trainable_head=True reads texts of any length as ids; leave tokenizer_in_graph and "
            "fixed_lengths out."
        )
    if model.get_layer("classifier").bias is None:
        raise InputError(
            f"trainable_head=True needs a classifier with a bias, which a {model.name} has not."
        )


def head_endpoints(model, inputs_of, specs):
    """Return the endpoints of a classifier's last layer, as `to_tflite` takes them.

    - `text_features`: the inputs of "run" to `features` (1, D), of the dense layer.
    - `train_head`: one step of gradient descent on the mean cross-entropy of `features` (B, D) and
      `targets` (B, C), with `kernel` (D, C), `bias` (C,) and `learning_rate` (1,), to the new
      `kernel` and `bias`, and the `loss` before the step. The rate is divided by the mean of
      |features|^2 + 1, to which the loss' curvature is proportional: below 4 it falls.
    - `score_features`: `features`, `kernel` and `bias` to `probability` (B, C).
    - `start_head`: `factor` (1,) times the `kernel` and `bias` that the model was trained to, in
      float32 in any file.

    C may be another number than the model's, for classes that are new.

    Args:
        model: a classifier.
        inputs_of: function of the arguments of "run" to the model's inputs.
        specs: the `tf.TensorSpec`s of "run".
    """
    dense = model.get_layer("classifier")
    encode = submodel(model.input, {"features": dense.input}, name="features")
    width = dense.input.shape[-1]
    features = tf.TensorSpec((None, width), "float32", "features")
    head = [
        tf.TensorSpec((width, None), "float32", "kernel"),
        tf.TensorSpec((None,), "float32", "bias"),
    ]
    targets = tf.TensorSpec((None, None), "float32", "targets")

    def number(name):
        return tf.TensorSpec((1,), "float32", name)

    def text_features(ids, mask, segment_ids):
        return encode(inputs_of(ids, mask, segment_ids), training=False)

    def train_head(features, targets, kernel, bias, learning_rate):
        logits = features @ kernel + bias
        log_p = tf.nn.log_softmax(logits)
        loss = -tf.reduce_mean(tf.reduce_sum(targets * log_p, axis=-1))
        # The gradient of the loss by the logits.
        error = (tf.exp(log_p) - targets) / tf.cast(tf.shape(features)[0], "float32")
        rate = learning_rate / (tf.reduce_mean(tf.reduce_sum(features**2, axis=-1)) + 1)
        return {
            "kernel": kernel - rate * tf.matmul(features, error, transpose_a=True),
            "bias": bias - rate * tf.reduce_sum(error, axis=0),
            "loss": loss[None],
        }

    def score_features(features, kernel, bias):
        return {"probability": tf.nn.softmax(features @ kernel + bias)}

    def start_head(factor):
        return {"kernel": factor * dense.kernel, "bias": factor * dense.bias}

    return {
        FEATURES: (text_features, specs),
        PROBABILITY: (score_features, [features, *head]),
        START: (start_head, [number("factor")]),
        STEP: (train_head, [features, targets, *head, number("learning_rate")]),
    }
