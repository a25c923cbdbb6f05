"""Evaluation of causal language models: perplexity and bits per character."""

import dataclasses
import itertools
import math

import keras
import numpy as np
import tensorflow as tf

from tfnlp.corpora.documents import warn_of_unknown
from tfnlp.models import build_model, config_of
from tfnlp.objectives.causal_lm import NEXT, next_token_model
from tfnlp.objectives.lm_evaluation import window_length
from tfnlp.objectives.special_token_template import SpecialTokenTemplate
from tfnlp.text.special_tokens import end_token_id
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar

# The number of texts that are held in memory as strings.
PIECE = 20_000


@dataclasses.dataclass(frozen=True, eq=False)
class TextStream:
    """Texts as one stream of tokens, with an end token before the first and after each.

    Args:
        token_ids: (tokens,) int32; the first is not scored, as it has no context.
        characters: the number of characters of the texts, counting an end token as one.
        texts: the number of texts.
        unknown_share: the share of unknown tokens.
    """

    token_ids: np.ndarray
    characters: int
    texts: int
    unknown_share: float = 0.0

    @classmethod
    def from_texts(cls, texts, tokenizer):
        """Build the stream of an iterable of texts; without end tokens if the tokenizer has none.

        Raises:
            InputError: if there are fewer than 2 tokens.
        """
        end, before = (
            end_token_id(tokenizer),
            len(SpecialTokenTemplate.from_tokenizer(tokenizer).single[0]),
        )
        after = SpecialTokenTemplate.from_tokenizer(tokenizer).single_size - before
        ends = [] if end is None else [end]
        parts, characters, count, texts = [np.array(ends, "int32")], 0, 0, iter(texts)
        while batch := list(itertools.islice(texts, PIECE)):
            encodings = tokenizer.encode(batch, literal=True)  # as in a corpus
            for start, stop in itertools.pairwise(encodings.starts):
                parts += [
                    encodings.token_ids[start + before : stop - after],
                    np.array(ends, "int32"),
                ]
            characters += sum(map(len, batch)) + len(batch) * len(ends)
            count += len(batch)
        ids, unknown = np.concatenate(parts), tokenizer.unknown_token_id
        # A token in both roles counts as an end token.
        share = 0.0 if unknown == end else np.count_nonzero(ids == unknown) / max(len(ids), 1)
        stream = cls(ids, characters, count, share)
        if len(stream.token_ids) < 2:
            raise InputError("The texts have no token that comes after another; give more text.")
        return stream


def sliding_windows(length, max_length, stride):
    """Return windows in which each position of a stream is scored once, with context before it.

    Args:
        length: the number of positions.
        max_length: the number of positions of a window.
        stride: the distance between the starts of consecutive windows. All but the first window
            score their last `stride` positions.

    Returns:
        (windows, 3) integers: the first position, the end, and the first scored position.

    Raises:
        InputError: if the stride is below 1 or skips positions.
    """
    if not 1 <= stride <= max_length:
        raise InputError(
            f"stride={stride} must be at least 1 and at most the {max_length} tokens of a window."
        )
    starts = np.arange(0, max(length - max_length, 0) + stride, stride)
    ends = np.minimum(starts + max_length, length)
    return np.stack([starts, ends, np.concatenate([[0], ends[:-1]])], axis=1)


def evaluate_causal_lm(
    model, tokenizer, texts, memory_lengths=None, max_length=None, stride=None, batch_size=8
):
    """Evaluate a causal LM, and return a list of dicts, one for each memory length.

    Args:
        model: a `TextModel` with the head "causal_lm", without memory.
        tokenizer: the tokenizer of the model.
        texts: an iterable of strings.
        memory_lengths: the memory lengths of a Transformer-XL, a list; where None, its own.
        max_length, stride, batch_size: as in `perplexity`.

    Raises:
        InputError: for memory lengths of a family without memory or of a recurrent network, which
            uses its state; for a stride together with either; and as in `perplexity`.
    """
    config = config_of(model)
    if config.recurrent:
        for name, value in (("memory_lengths", memory_lengths), ("stride", stride)):
            if value is not None:
                raise InputError(
                    f"{name}={value} has no effect on a recurrent network, which continues from "
                    "its state; leave it out."
                )
        model, memory_lengths = _with_memory(model, config), [None]
    if memory_lengths is None:
        memory_lengths = [config.memory_length or 0] if config.has_memory else [None]
    if stride is not None and any(int(length or 0) for length in memory_lengths):
        raise InputError(
            f"stride={stride} has no effect with a memory, as no token is read twice; leave it "
            "out, or give memory_lengths=0."
        )
    models = [
        model if length is None else at_memory_length(model, int(length))
        for length in memory_lengths
    ]
    stream, figures = TextStream.from_texts(texts, tokenizer), []
    warn_of_unknown(stream.unknown_share)
    for length, with_length in zip(memory_lengths, models, strict=True):
        row = {} if length is None else {"memory_length": int(length)}
        row |= {name: getattr(stream, name) for name in ("texts", "characters", "unknown_share")}
        figures.append(row | perplexity(with_length, stream, max_length, stride, batch_size))
    return figures


def perplexity(model, stream, max_length=None, stride=None, batch_size=8):
    """Compute the perplexity of a causal language model, and its bits per character.

    A model with memory reads segments of `max_length`, each with the memory of those before. The
    stream is cut into `batch_size` lanes, which start without memory. Other models read windows
    that overlap by all but `stride` tokens.

    Args:
        model: a `TextModel` with the head "causal_lm".
        stream: a `TextStream`.
        max_length: the number of tokens of a segment or window; where None, the positions of the
            model, or 128 if they are unlimited.
        stride: the distance between windows; where None, `max_length`, so that windows do not
            overlap.
        batch_size: B.

    Returns:
        A dict: the number of scored `tokens`, the `cross_entropy` of a token in nats,
        `perplexity`, and `bits_per_character`.

    Raises:
        InputError: if the stride does not fit.
    """
    max_length = window_length(model, max_length)
    length = len(stream.token_ids) - 1  # the last token is only a label
    if "memory" in model.input:
        batches = _lanes(length, max_length, min(batch_size, length))
    else:
        windows = sliding_windows(
            length, min(max_length, length), min(stride or max_length, length)
        )
        batches = np.split(windows, range(batch_size, len(windows), batch_size))
    total = _log_likelihood(model, stream.token_ids, batches, max_length)
    return {
        "tokens": length,
        "cross_entropy": -total / length,
        "perplexity": math.exp(-total / length),
        "bits_per_character": -total / math.log(2) / stream.characters,
    }


def at_memory_length(model, memory_length):
    """Return a causal LM with the same weights and another memory length.

    Args:
        model: a `TextModel` with the head "causal_lm".
        memory_length: 0 for no memory.

    Raises:
        InputError: if the family has no memory.
    """
    config = config_of(model)
    if not config.has_memory:
        name = type(config).__name__.removesuffix("Config")
        raise InputError(
            f"memory_lengths={memory_length} does not fit the family {name}, which has no "
            "memory; leave it out, or give a Transformer-XL."
        )
    if memory_length:
        config = dataclasses.replace(config, memory_length=memory_length)
    return _with_memory(model, config, memory_length > 0)


def _with_memory(model, config, memory=True):
    """Return a model with the same weights, with or without a memory."""
    other = build_model(config, model.head, memory=memory)
    other.set_weights(model.get_weights())
    return other


def _lanes(length, max_length, lanes):
    """Return the batches of segments (lanes, 3) of a stream in lanes, in order."""
    size = math.ceil(length / lanes)
    starts = np.arange(lanes) * size
    ends = np.minimum(starts + size, length)[:, None]
    batches = []
    for begin in range(0, size, max_length):
        segment = np.stack([starts + begin, starts + begin + max_length, starts + begin], axis=1)
        batches.append(np.minimum(segment, ends))
    return batches


def _log_likelihood(model, token_ids, batches, max_length):
    """Return the sum of the log-probabilities of the next tokens at all scored positions.

    Args:
        model: a causal `TextModel`.
        token_ids: (positions + 1,).
        batches: lists of (start, end, first scored position).
        max_length: L.
    """
    model = next_token_model(model)
    keeps = "memory" in model.input
    signature = {k: tf.TensorSpec(x.shape, x.dtype) for k, x in model.input.items()}

    @tf.function(input_signature=[signature, tf.TensorSpec((None, None), "float32")])
    def run(inputs, scored):
        outputs = model(inputs, training=False)
        if "logits" in outputs:
            log_probabilities = -keras.losses.sparse_categorical_crossentropy(
                inputs[NEXT], tf.cast(outputs["logits"], "float32"), from_logits=True
            )
        else:
            log_probabilities = outputs["log_probabilities"]
        return tf.reduce_sum(log_probabilities * scored), outputs.get("memory", ())

    total, memory = 0.0, None
    for batch in progress_bar(batches, desc="reading", unit="batch", delay=5):
        ids = np.zeros((len(batch), max_length), "int32")
        labels, mask, scored = ids.copy(), ids.copy(), ids.astype("float32")
        for row, (start, end, first) in enumerate(batch):
            ids[row, : end - start] = token_ids[start:end]
            labels[row, : end - start] = token_ids[start + 1 : end + 1]
            mask[row, : end - start] = 1
            scored[row, first - start : end - start] = 1
        inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask, NEXT: labels}
        if keeps:
            empty = (len(batch), model.input["memory"].shape[1], 0, model.input["memory"].shape[3])
            inputs["memory"] = np.zeros(empty, "float32") if memory is None else memory
        log_likelihood, memory = run(inputs, scored)
        total += float(log_likelihood)
    return total
