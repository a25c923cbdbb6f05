"""How well language models predict texts: perplexities, bits per character, hidden tokens."""

import dataclasses
import itertools
import math

import keras
import numpy as np
import tensorflow as tf

from tfnlp.corpora.documents import warn_of_unknown
from tfnlp.errors import InputError
from tfnlp.models import build_model, config_of, max_positions
from tfnlp.objectives.causal_lm import NEXT, next_token_model
from tfnlp.objectives.frame import Frame
from tfnlp.objectives.masking import POSITIONS, MaskedBatches, Masking
from tfnlp.objectives.positions import predict_at_positions
from tfnlp.progress import progress_bar
from tfnlp.text.batches import IGNORED
from tfnlp.text.special_tokens import end_token_id

# The longest segment where a model has positions without end.
SEGMENT = 128
# Texts that are held as such at a time.
PIECE = 20_000


@dataclasses.dataclass(frozen=True, eq=False)
class TextStream:
    """Texts as one stream of tokens, an end token before the first and after each.

    Args:
        token_ids: (tokens,) int32; nothing is before the first, which is not scored.
        characters: of the texts, an end token being one.
        texts: how many there are.
        unknown_share: of the tokens, those that are unknown to the tokenizer.
    """

    token_ids: np.ndarray
    characters: int
    texts: int
    unknown_share: float = 0.0

    @classmethod
    def of(cls, texts, tokenizer):
        """The stream of an iterable of texts; without ends for a tokenizer without such a token.

        Raises:
            InputError: for fewer than 2 tokens.
        """
        end, before = end_token_id(tokenizer), len(Frame.of(tokenizer).single[0])
        after = Frame.of(tokenizer).single_size - before
        ends = [] if end is None else [end]
        parts, characters, count, texts = [np.array(ends, "int32")], 0, 0, iter(texts)
        while piece := list(itertools.islice(texts, PIECE)):
            found = tokenizer.encode(piece, literal=True)  # as a corpus is
            for start, stop in itertools.pairwise(found.starts):
                parts += [found.token_ids[start + before : stop - after], np.array(ends, "int32")]
            characters += sum(map(len, piece)) + len(piece) * len(ends)
            count += len(piece)
        ids, unknown = np.concatenate(parts), tokenizer.unknown_token_id
        # Where one token is both, it is an end.
        share = 0.0 if unknown == end else np.count_nonzero(ids == unknown) / max(len(ids), 1)
        stream = cls(ids, characters, count, share)
        if len(stream.token_ids) < 2:
            raise InputError("The texts have no token that comes after another; give more text.")
        return stream


def sliding_windows(length, max_length, stride):
    """Windows in which each position of a stream is scored once, with context before it.

    Args:
        length: the positions.
        max_length: the positions of a window.
        stride: by how much a window begins after the one before; all but the first score their
            last `stride` positions.

    Returns:
        (windows, 3) integers: each one's first position, its end, and the first that is scored.

    Raises:
        InputError: for a stride that leaves positions out, or below 1.
    """
    if not 1 <= stride <= max_length:
        raise InputError(
            f"stride={stride} must be at least 1 and at most the {max_length} tokens of a window."
        )
    starts = np.arange(0, max(length - max_length, 0) + stride, stride)
    ends = np.minimum(starts + max_length, length)
    return np.stack([starts, ends, np.concatenate([[0], ends[:-1]])], axis=1)


def check_arguments(head, memory_lengths=None, stride=None):
    """Raises an InputError for a head that predicts no tokens, and what does not fit it."""
    if head not in ("causal_lm", "masked_lm"):
        raise InputError(
            f"The model has the head {head!r}, of which there is no perplexity; give a causal or "
            "a masked language model."
        )
    for name, value in (("memory_lengths", memory_lengths), ("stride", stride)):
        if head == "masked_lm" and value is not None:
            raise InputError(
                f"{name}={value} has no effect on a masked language model; leave it out."
            )
    for length in memory_lengths or ():
        if not str(length).isdecimal():
            raise InputError(f"memory_lengths={length!r} must be whole numbers of at least 0.")


def evaluate_causal(
    model, tokenizer, texts, memory_lengths=None, max_length=None, stride=None, batch_size=8
):
    """The figures of a causal language model, a list of dicts with one for each memory length.

    Args:
        model: a `TextModel` with the head "causal_lm", without memory.
        tokenizer: the model's.
        texts: an iterable of strings.
        memory_lengths: the positions that a Transformer-XL keeps, a list; its own alone where
            None.
        max_length, stride, batch_size: as `perplexity` takes them.

    Raises:
        InputError: for memory lengths of a family without memory, or of a recurrent network,
            which goes on from its state, a stride beside one, and as `perplexity`.
    """
    config = config_of(model)
    if config.recurrent:
        for name, value in (("memory_lengths", memory_lengths), ("stride", stride)):
            if value is not None:
                raise InputError(
                    f"{name}={value} has no effect on a recurrent network, which goes on from its "
                    "state; leave it out."
                )
        model, memory_lengths = _with_memory(model, config), [None]
    if memory_lengths is None:
        memory_lengths = [config.memory_length or 0] if config.has_memory else [None]
    if stride is not None and any(int(length or 0) for length in memory_lengths):
        raise InputError(
            f"stride={stride} has no effect beside a memory, with which no token is read twice; "
            "leave it out, or give memory_lengths=0."
        )
    models = [
        model if length is None else at_memory_length(model, int(length))
        for length in memory_lengths
    ]
    stream, figures = TextStream.of(texts, tokenizer), []
    warn_of_unknown(stream.unknown_share)
    for length, one in zip(memory_lengths, models, strict=True):
        found = perplexity(one, stream, max_length, stride, batch_size)
        known = {} if length is None else {"memory_length": int(length)}
        of_texts = ("texts", "characters", "unknown_share")
        figures.append(known | {name: getattr(stream, name) for name in of_texts} | found)
    return figures


def evaluate_masked(
    model, tokenizer, texts, max_length, share=0.15, pseudo=True, batch_size=64, seed=0
):
    """The figures of a masked language model, a list of one dict.

    Args:
        model, tokenizer, texts, max_length, share, batch_size, seed: as `masked_accuracy` takes
            them.
        pseudo: whether its pseudo-perplexity is one of them.
    """
    data, figures = (model, tokenizer, texts, max_length), {"texts": len(texts)}
    figures |= masked_accuracy(*data, share, batch_size, seed)
    return [figures | (pseudo_perplexity(*data, batch_size) if pseudo else {})]


def table(figures):
    """Figures, a list of dicts of the same keys, as lines of a table."""
    rows = [list(figures[0])]
    for row in figures:
        rows.append([f"{v:.4f}" if isinstance(v, float) else str(v) for v in row.values()])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )


def perplexity(model, stream, max_length=None, stride=None, batch_size=8):
    """The perplexity of a causal language model, and its bits per character.

    A model that takes a memory reads segments of `max_length`, each with the memory of those
    before; the stream is cut into `batch_size` lanes, which begin without one. Another reads
    windows that overlap by all but `stride` tokens.

    Args:
        model: a `TextModel` with the head "causal_lm".
        stream: a `TextStream`.
        max_length: the tokens of a segment or window; as many as the model has positions, 128 of
            one without end, where None.
        stride: `max_length` where None, so that no tokens are read twice.
        batch_size: B.

    Returns:
        A dict: `tokens` scored, `cross_entropy` of a token in nats, `perplexity`, and
        `bits_per_character`.

    Raises:
        InputError: for a stride that does not fit.
    """
    max_length = _longest(model, max_length)
    length = len(stream.token_ids) - 1  # the last token is predicted, but nothing from it
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
    """A causal language model that keeps so many positions in its memory, of the same weights.

    Args:
        model: a `TextModel` with the head "causal_lm".
        memory_length: 0 for no memory.

    Raises:
        InputError: for a family without memory.
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
    """A model of the same weights that takes a memory, or none."""
    other = build_model(config, model.head, memory=memory)
    other.set_weights(model.get_weights())
    return other


def pseudo_perplexity(model, tokenizer, texts, max_length=None, batch_size=64):
    """The pseudo-perplexity of a masked language model: each token is masked in turn.

    Salazar et al. 2020, 'Masked Language Model Scoring', eq. 1 and 3: the exponential of the mean
    log-probability, negated, of a token that all others of its text are seen of. Special tokens
    and unknown ones are seen, but not scored. A text longer than `max_length` is several.

    Args:
        model: a `TextModel` with the head "masked_lm".
        tokenizer: the model's.
        texts: a list of strings.
        max_length: the tokens of a text, special ones counted; as many as the model has positions
            where None, 128 of one without end.
        batch_size: copies of texts in a batch.

    Returns:
        A dict: `tokens` scored, and `pseudo_perplexity`.

    Raises:
        InputError: for a tokenizer without a mask token, and texts without a token to score.
    """
    masking = Masking.of(tokenizer)
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
        for here in np.split(order, range(batch_size, len(order), batch_size)):
            inputs = encodings.padded(rows[here], tokenizer.pad_token_id)
            index = np.arange(len(here)), places[here]
            labels = inputs["token_ids"][index][:, None]
            inputs["token_ids"][index] = masking.mask_token_id
            found, _ = score(inputs | {POSITIONS: places[here][:, None].astype("int32")}, labels)
            total += float(found)
            bar.update(len(here))
    return {"tokens": len(rows), "pseudo_perplexity": math.exp(-total / len(rows))}


def masked_accuracy(model, tokenizer, texts, max_length=None, share=0.15, batch_size=64, seed=0):
    """How many hidden tokens a masked language model finds, hidden as in its training.

    Args:
        model, tokenizer, texts, max_length, batch_size: as `pseudo_perplexity` takes them.
        share: of the tokens that are to be predicted; 80/10/10, as in BERT.
        seed: of what is hidden.

    Returns:
        A dict: `masked_tokens`, `masked_accuracy` and `masked_perplexity`, the exponential of
        their cross-entropy.
    """
    batches = MaskedBatches(
        _windows_of(model, tokenizer, texts, max_length),
        batch_size,
        Masking.of(tokenizer, share),
        seed=seed,
        pad_token_id=tokenizer.pad_token_id,
    )
    score, sums = _scorer(predict_at_positions(model)), np.zeros(3)
    for inputs, labels in progress_bar(
        batches.epoch(), total=len(batches), desc="predicting", unit="batch", delay=5
    ):
        found = score(inputs, labels)
        sums += [*map(float, found), np.count_nonzero(labels != IGNORED)]
    total, hits, count = sums
    if not count:
        raise InputError("The texts have no token that could be masked; give more text.")
    return {
        "masked_tokens": int(count),
        "masked_accuracy": hits / count,
        "masked_perplexity": math.exp(-total / count),
    }


def _windows_of(model, tokenizer, texts, max_length):
    return tokenizer.encode_text_windows(texts, _longest(model, max_length), literal=True)


def _longest(model, max_length):
    """The tokens that a model reads together, where None was asked for as many as it can."""
    positions = max_positions(model)
    if max_length is not None and positions is not None and max_length > positions:
        raise InputError(f"max_length={max_length} is above the model's {positions} positions.")
    return max_length or positions or SEGMENT


def _lanes(length, max_length, lanes):
    """The batches of segments (lanes, 3) of a stream in lanes, each lane's one after another."""
    size = math.ceil(length / lanes)
    starts = np.arange(lanes) * size
    ends = np.minimum(starts + size, length)[:, None]
    batches = []
    for begin in range(0, size, max_length):
        segment = np.stack([starts + begin, starts + begin + max_length, starts + begin], axis=1)
        batches.append(np.minimum(segment, ends))
    return batches


def _log_likelihood(model, token_ids, batches, max_length):
    """The sum of the log-probabilities of what comes after each scored position of a stream.

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
            found = -keras.losses.sparse_categorical_crossentropy(
                inputs[NEXT], tf.cast(outputs["logits"], "float32"), from_logits=True
            )
        else:
            found = outputs["log_probabilities"]
        return tf.reduce_sum(found * scored), outputs.get("memory", ())

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
        found, memory = run(inputs, scored)
        total += float(found)
    return total


def _scorer(model):
    """A function of inputs and labels (B, P): their log-probabilities' sum, and those found."""
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
