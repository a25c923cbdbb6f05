"""Evaluation of masked language models: pseudo-perplexity and masked-token accuracy."""

import math

import keras
import numpy as np
import tensorflow as tf

from tfnlp.objectives.lm_evaluation import window_length
from tfnlp.objectives.masked_positions import predict_at_positions
from tfnlp.objectives.masking import POSITIONS, MaskedBatches, Masking
from tfnlp.text.batches import IGNORED
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar


def evaluate_masked_lm(
    model, tokenizer, texts, max_length, share=0.15, pseudo=True, batch_size=64, seed=0
):
    """Evaluate a masked language model, and return a list of one dict.

    Args:
        model, tokenizer, texts, max_length, share, batch_size, seed: as in `masked_accuracy`.
        pseudo: whether to compute the pseudo-perplexity.
    """
    data, figures = (model, tokenizer, texts, max_length), {"texts": len(texts)}
    figures |= masked_accuracy(*data, share, batch_size, seed)
    return [figures | (pseudo_perplexity(*data, batch_size) if pseudo else {})]


def pseudo_perplexity(model, tokenizer, texts, max_length=None, batch_size=64):
    """Compute the pseudo-perplexity of a masked language model by masking each token in turn.

    Salazar et al. 2020, 'Masked Language Model Scoring', eq. 1 and 3: the exponential of the
    negative mean log-probability of a token, given all others of its text. Special and unknown
    tokens are context, but not scored. A text longer than `max_length` is split.

    Args:
        model: a `TextModel` with the head "masked_lm".
        tokenizer: the tokenizer of the model.
        texts: a list of strings.
        max_length: the number of tokens of a text, including special tokens; where None, the
            positions of the model, or 128 if they are unlimited.
        batch_size: the number of masked copies in a batch.

    Returns:
        A dict: the number of scored `tokens`, and `pseudo_perplexity`.

    Raises:
        InputError: if the tokenizer has no mask token, or the texts have no token to score.
    """
    masking = Masking.from_tokenizer(tokenizer)
    encodings = _windows_of(model, tokenizer, texts, max_length)
    rows = np.repeat(np.arange(len(encodings)), encodings.lengths)
    places = np.arange(len(rows)) - encodings.starts[rows]
    scored = np.isin(encodings.token_ids, masking.ordinary_ids)
    rows, places = rows[scored], places[scored]
    if not len(rows):
        raise InputError("The texts have no token that could be masked; give more text.")
    order = np.argsort(encodings.lengths[rows], kind="stable")
    score = _scorer(predict_at_positions(model))
    total = 0.0
    with progress_bar(total=len(rows), desc="masking each token", unit="token", delay=5) as bar:
        for indices in np.split(order, range(batch_size, len(order), batch_size)):
            inputs = encodings.padded(rows[indices], tokenizer.pad_token_id)
            index = np.arange(len(indices)), places[indices]
            labels = inputs["token_ids"][index][:, None]
            inputs["token_ids"][index] = masking.mask_token_id
            log_likelihood, _ = score(
                inputs | {POSITIONS: places[indices][:, None].astype("int32")}, labels
            )
            total += float(log_likelihood)
            bar.update(len(indices))
    return {"tokens": len(rows), "pseudo_perplexity": math.exp(-total / len(rows))}


def masked_accuracy(model, tokenizer, texts, max_length=None, share=0.15, batch_size=64, seed=0):
    """Compute how many masked tokens a masked language model predicts, masked as in training.

    Args:
        model, tokenizer, texts, max_length, batch_size: as in `pseudo_perplexity`.
        share: the share of tokens to predict; 80/10/10, as in BERT.
        seed: the seed of the masking.

    Returns:
        A dict: `masked_tokens`, `masked_accuracy` and `masked_perplexity`, the exponential of
        their cross-entropy.
    """
    batches = MaskedBatches(
        _windows_of(model, tokenizer, texts, max_length),
        batch_size,
        Masking.from_tokenizer(tokenizer, share),
        seed=seed,
        pad_token_id=tokenizer.pad_token_id,
    )
    score, sums = _scorer(predict_at_positions(model)), np.zeros(3)
    for inputs, labels in progress_bar(
        batches.epoch(), total=len(batches), desc="predicting", unit="batch", delay=5
    ):
        batch_sums = score(inputs, labels)
        sums += [*map(float, batch_sums), np.count_nonzero(labels != IGNORED)]
    total, hits, count = sums
    if not count:
        raise InputError("The texts have no token that could be masked; give more text.")
    return {
        "masked_tokens": int(count),
        "masked_accuracy": hits / count,
        "masked_perplexity": math.exp(-total / count),
    }


def _windows_of(model, tokenizer, texts, max_length):
    return tokenizer.encode_text_windows(texts, window_length(model, max_length), literal=True)


def _scorer(model):
    """Return a function of inputs and labels (B, P).

    It computes the sum of the log-probabilities of the labels, and the number of correct
    predictions.
    """
    signature = {k: tf.TensorSpec(x.shape, x.dtype) for k, x in model.input.items()}

    @tf.function(input_signature=[signature, tf.TensorSpec((None, None), "int32")])
    def run(inputs, labels):
        logits = tf.cast(model(inputs, training=False)["logits"], "float32")
        real = labels != IGNORED
        values = keras.losses.sparse_categorical_crossentropy(
            tf.where(real, labels, 0), logits, from_logits=True
        )
        hits = real & (tf.argmax(logits, -1, "int32") == labels)
        return -tf.reduce_sum(tf.where(real, values, 0.0)), tf.reduce_sum(tf.cast(hits, "int32"))

    return run
