"""Evaluation of language models: perplexity, bits per character, masked-token accuracy."""

import dataclasses
import itertools
import math

import numpy as np
import tensorflow as tf

from tfnlp.configs import family_name
from tfnlp.corpora.documents import warn_of_unknown
from tfnlp.layers.core.merged_weights import merged_weights
from tfnlp.models import build_model, config_of, max_positions
from tfnlp.objectives.batches.masking import POSITIONS, MaskedBatches, Masking
from tfnlp.objectives.batches.special_token_template import SpecialTokenTemplate
from tfnlp.objectives.causal_lm import NEXT, next_token_model
from tfnlp.objectives.evaluation_settings import LmEvaluation
from tfnlp.objectives.masked_positions import predict_at_positions
from tfnlp.objectives.objective import token_scores
from tfnlp.text.batching.batches import IGNORED
from tfnlp.text.tokenizers.special_tokens import end_token_id
from tfnlp.utils.errors import InputError
from tfnlp.utils.formatting import aligned
from tfnlp.utils.progress import progress_bar

# The segment length of models with unlimited positions.
SEGMENT = 128
# The number of texts that are held in memory as strings.
PIECE = 20_000


def check_evaluation(head, settings):
    """Raise an InputError for a head that predicts no tokens, or without use for a setting.

    Args:
        head: of the model.
        settings: a `LmEvaluation`.
    """
    if head not in ("causal_lm", "masked_lm"):
        raise InputError(
            f"The model has the head {head!r}, of which there is no perplexity; give a causal or "
            "a masked language model."
        )
    if head == "masked_lm":
        _refuse(settings, "on a masked language model", "memory_lengths", "stride")


def _refuse(settings, where, *names):
    """Raise an InputError for a setting that is not None and has no effect."""
    for name in names:
        if (value := getattr(settings, name)) is not None:
            raise InputError(f"{name}={value} has no effect {where}; leave it out.")


def figures_table(figures):
    """Format results, a list of dicts with the same keys, as lines of a table."""
    rows = [list(figures[0])]
    for row in figures:
        rows.append([f"{v:.4f}" if isinstance(v, float) else str(v) for v in row.values()])
    return "\n".join(aligned(rows, str.rjust))


def window_length(model, max_length):
    """Return the length of a window: `max_length`, or where None as many positions as possible."""
    positions = max_positions(model)
    if max_length is not None and positions is not None and max_length > positions:
        raise InputError(f"max_length={max_length} is above the model's {positions} positions.")
    return max_length or positions or SEGMENT


def _scorer(model):
    """Return a function of inputs and labels (B, T) that scores the labels except -100.

    It returns `token_scores`, and the next memory of a model that has one.
    """
    signature = {k: tf.TensorSpec(x.shape, x.dtype) for k, x in model.input.items()}

    @tf.function(input_signature=[signature, tf.TensorSpec((None, None), "int32")])
    def run(inputs, labels):
        outputs = model(inputs, training=False)
        return token_scores(labels, outputs), outputs.get("memory", ())

    return run


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
        end, unknown = end_token_id(tokenizer), tokenizer.unknown_token_id
        before, after = map(len, SpecialTokenTemplate.from_tokenizer(tokenizer).single)
        ends = np.array([] if end is None else [end], "int32")
        parts, characters, count, texts = [ends], 0, 0, iter(texts)
        while batch := list(itertools.islice(texts, PIECE)):
            encodings = tokenizer.encode(batch, literal=True)  # as in a corpus
            for start, stop in itertools.pairwise(encodings.starts):
                parts += [encodings.token_ids[start + before : stop - after], ends]
            characters += sum(map(len, batch)) + len(batch) * len(ends)
            count += len(batch)
        ids = np.concatenate(parts)
        if len(ids) < 2:
            raise InputError("The texts have no token that comes after another; give more text.")
        # A token in both roles counts as an end token.
        return cls(ids, characters, count, 0.0 if unknown == end else np.mean(ids == unknown))


def sliding_windows(length, max_length, stride):
    """Return windows in which each position of a stream is scored once, with context before it.

    Windows start at a distance of `stride`. All but the first score their last `stride` positions.

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


def evaluate_causal_lm(model, tokenizer, texts, settings=None):
    """Evaluate a causal LM, and return a list of dicts, one for each memory length.

    Args:
        model: a `TextModel` with the head "causal_lm", without memory.
        tokenizer: the tokenizer of the model.
        texts: an iterable of strings.
        settings: a `LmEvaluation`; the defaults where None.

    Raises:
        InputError: for memory lengths of a family without memory or of a recurrent network, which
            uses its state; for a stride together with either; and as in `perplexity`.
    """
    config, settings = config_of(model), settings or LmEvaluation()
    if config.recurrent:
        where = "on a recurrent network, which continues from its state"
        _refuse(settings, where, "memory_lengths", "stride")
        model, lengths = _with_memory(model, config), [None]
    elif config.has_memory:
        lengths = settings.memory_lengths
        if lengths is None:
            lengths = [config.memory_length or 0]
        if any(lengths):
            _refuse(settings, "with a memory, as no token is read twice", "stride")
    else:
        where = f"on the family {family_name(config)}, which has no memory"
        _refuse(settings, where, "memory_lengths")
        lengths = [None]
    reading = settings.max_length, settings.stride, settings.batch_size
    stream, figures = TextStream.from_texts(texts, tokenizer), []
    warn_of_unknown(stream.unknown_share)
    for length in lengths:
        with_length = model if length is None else at_memory_length(model, length)
        row = {} if length is None else {"memory_length": length}
        row |= {name: getattr(stream, name) for name in ("texts", "characters", "unknown_share")}
        figures.append(row | perplexity(with_length, stream, *reading))
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
    """
    max_length = window_length(model, max_length)
    length = len(stream.token_ids) - 1  # the last token is only a label
    if "memory" in model.input:
        batches = _lanes(length, max_length, min(batch_size, length))
    else:
        stride = min(stride or max_length, length)
        windows = sliding_windows(length, min(max_length, length), stride)
        batches = np.split(windows, range(batch_size, len(windows), batch_size))
    total = _log_likelihood(model, stream.token_ids, batches, max_length)
    return {
        "tokens": length,
        "cross_entropy": -total / length,
        "perplexity": math.exp(-total / length),
        "bits_per_character": -total / math.log(2) / stream.characters,
    }


def at_memory_length(model, memory_length):
    """Return a causal LM with the same weights and another memory length, 0 for no memory."""
    config = config_of(model)
    if memory_length:
        config = dataclasses.replace(config, memory_length=memory_length)
    return _with_memory(model, config, memory_length > 0)


def _with_memory(model, config, memory=True):
    """Return a model with the same weights, with or without a memory."""
    other = build_model(config, model.head, memory=memory)
    other.set_weights([*merged_weights(model).values()])
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

    Batches are lists of (start, end, first scored position) in `token_ids`.
    """
    model = next_token_model(model)
    score, total, memory = _scorer(model), 0.0, None
    for batch in progress_bar(batches, desc="reading", unit="batch", delay=5):
        ids = np.zeros((len(batch), max_length), "int32")
        following, mask, labels = ids.copy(), ids.copy(), np.full_like(ids, IGNORED)
        for row, (start, end, first) in enumerate(batch):
            ids[row, : end - start] = token_ids[start:end]
            following[row, : end - start] = token_ids[start + 1 : end + 1]
            mask[row, : end - start] = 1
            labels[row, first - start : end - start] = token_ids[first + 1 : end + 1]
        inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask, NEXT: following}
        if "memory" in model.input:
            empty = (len(batch), model.input["memory"].shape[1], 0, model.input["memory"].shape[3])
            inputs["memory"] = np.zeros(empty, "float32") if memory is None else memory
        scores, memory = score(inputs, labels)
        total += float(scores["log_likelihood"][0])
    return total


def evaluate_masked_lm(model, tokenizer, texts, settings=None):
    """Evaluate a masked language model, and return a list of one dict.

    Args:
        model: a `TextModel` with the head "masked_lm".
        tokenizer: the tokenizer of the model.
        texts: a list of strings; one of more than `max_length` tokens is split.
        settings: a `LmEvaluation`; the defaults where None.

    Raises:
        InputError: if the tokenizer has no mask token, or the texts have no token to score.
    """
    settings = settings or LmEvaluation()
    data, size = (model, tokenizer, texts, settings.max_length), settings.batch_size
    figures = {"texts": len(texts)}
    figures |= masked_accuracy(*data, settings.masked_share, size, settings.seed)
    return [figures | (pseudo_perplexity(*data, size) if settings.pseudo_perplexity else {})]


def pseudo_perplexity(model, tokenizer, texts, max_length=None, batch_size=64):
    """Compute the pseudo-perplexity of a masked language model by masking each token in turn.

    Salazar et al. 2020, 'Masked Language Model Scoring', eq. 1 and 3: the exponential of the
    negative mean log-probability of a token, given all others of its text. Special and unknown
    tokens are context, but not scored.

    Args:
        model, tokenizer, texts: as in `evaluate_masked_lm`.
        max_length: the most tokens of a text, with special ones, beyond which it is split; the
            positions of the model, or 128 if they are unlimited, where None.
        batch_size: masked copies in a batch.

    Returns:
        A dict: the number of scored `tokens`, and `pseudo_perplexity`.
    """
    masking = Masking.from_tokenizer(tokenizer)
    encodings = _windows_of(model, tokenizer, texts, max_length)
    rows = np.repeat(np.arange(len(encodings)), encodings.lengths)
    places = np.arange(len(rows)) - encodings.starts[rows]
    scored = np.isin(encodings.token_ids, masking.ordinary_ids)
    rows, places = rows[scored], places[scored]
    order = np.argsort(encodings.lengths[rows], kind="stable")
    score, total = _scorer(predict_at_positions(model)), 0.0
    with progress_bar(total=len(rows), desc="masking each token", unit="token", delay=5) as bar:
        for indices in np.split(order, range(batch_size, len(order), batch_size)):
            inputs = encodings.padded(rows[indices], tokenizer.pad_token_id)
            index = np.arange(len(indices)), places[indices]
            labels = inputs["token_ids"][index][:, None]
            inputs["token_ids"][index] = masking.mask_token_id
            inputs[POSITIONS] = places[indices][:, None].astype("int32")
            total += float(score(inputs, labels)[0]["log_likelihood"][0])
            bar.update(len(indices))
    return {"tokens": len(rows), "pseudo_perplexity": _perplexity(total, len(rows))}


def masked_accuracy(model, tokenizer, texts, max_length=None, share=0.15, batch_size=64, seed=0):
    """Compute how many masked tokens a masked language model predicts, masked 80/10/10 as in BERT.

    Arguments are as in `pseudo_perplexity`, beside the share of masked tokens and a seed.

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
    bar = {"total": len(batches), "desc": "predicting", "unit": "batch", "delay": 5}
    for inputs, labels in progress_bar(batches.epoch(), **bar):
        scores, _ = score(inputs, labels)
        sums += [float(scores["log_likelihood"][0]), *map(float, scores["accuracy"])]
    total, hits, count = sums
    masked_perplexity = _perplexity(total, count)
    return {
        "masked_tokens": int(count),
        "masked_accuracy": hits / count,
        "masked_perplexity": masked_perplexity,
    }


def _windows_of(model, tokenizer, texts, max_length):
    return tokenizer.encode_text_windows(texts, window_length(model, max_length), literal=True)


def _perplexity(total, count):
    """Return the perplexity of a total log-likelihood; raise an InputError for no token."""
    if not count:
        raise InputError("The texts have no token that could be masked; give more text.")
    return math.exp(-total / count)
