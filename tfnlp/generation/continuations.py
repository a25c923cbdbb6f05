"""Prompts and sources as ids, and generated ids as text."""

import dataclasses

import numpy as np

from tfnlp.generation.generation_settings import Beam, Constraints, Sample
from tfnlp.generation.text_stream import until_stop
from tfnlp.text.reading.text_arguments import as_texts, check_too_long, warn_of_long
from tfnlp.text.tokenizers.special_tokens import plain_ids
from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class Generated:
    """A generated text.

    Args:
        text: the continuation of a prompt, or the output for a source, up to a stop string.
        token_ids: its ids, a tuple, without the end token, but with those of a stop string.
        ended: whether the model generated an end token or a stop string before the length limit.
        score: the score of a beam search (`Beam`), else None.
    """

    text: str
    token_ids: tuple
    ended: bool
    score: float | None


def blank_texts(strategy):
    """Return empty `Generated`s for a blank source, as many as a strategy gives for any other."""
    if isinstance(strategy, Beam):
        return [Generated("", (), True, 0.0)] * strategy.best
    count = strategy.texts if isinstance(strategy, Sample) else 1
    return [Generated("", (), True, None)] * count


def generated(ids, score, settings, text_of):
    """Return the ids of a search as `Generated`.

    Args:
        ids: a list, with an end token if there is one.
        score: of a beam search, or None.
        settings: a `SearchSettings`.
        text_of: function from ids to their text.
    """
    ends = bool(ids) and ids[-1] in settings.ends
    # A forced end token does not count as ended by the model.
    at_limit = len(ids) == settings.steps
    forced = at_limit and settings.constraints.forced_last in settings.ends
    ids = ids[:-1] if ends else ids
    ids, text, stopped = until_stop(ids, text_of, settings.stop_strings)
    return Generated(text, tuple(ids), stopped or (ends and not forced), score)


def no_output(number):
    """Return the error of the text of this number, for which the constraints leave no output."""
    return InputError(
        f"The constraints leave no output for text {number + 1}: at some position no token is "
        "allowed; forbid less, or give a smaller min_new_tokens or a larger no_repeat_ngram_size."
    )


def check_streams(strategy):
    """Raise an InputError for a search that does not write one text from its start to its end."""
    if len(blank_texts(strategy)) > 1 or isinstance(strategy, Beam):
        raise InputError(
            f"on_token is for a search that writes one text of a prompt, not {strategy}; give a "
            "Greedy or a Sample of one text."
        )


def translation_constraints(constraints, end, pad):
    """Return the constraints of a translation: padding is forbidden, and the end forced if None.

    Args:
        constraints: a `Constraints`, or None.
        end, pad: ids of the model.
    """
    constraints = Constraints(forced_last=end) if constraints is None else constraints
    if pad == end:
        return constraints
    forbidden = (*constraints.forbidden, (pad,))
    return dataclasses.replace(constraints, forbidden=forbidden, renormalize=True)


def continuation(tokenizer, prompt, generated):
    """Return the text of generated ids, without that of the ids of the prompt."""
    prompt_text, text = tokenizer.decode([*prompt]), tokenizer.decode([*prompt, *generated])
    if text.startswith(prompt_text):
        return text[len(prompt_text) :]
    return tokenizer.decode([*generated])


def check_prompts(prompts, max_new_tokens, max_length):
    """Raise an InputError for an empty prompt, or one too long for the model.

    Args:
        prompts: a list of lists of ids.
        max_new_tokens: the maximum number of tokens to generate.
        max_length: the number of positions of the model; None for no limit.
    """
    for number, ids in enumerate(prompts):
        if not len(ids):
            raise InputError(f"prompts[{number}] has no token; give at least one.")
        if max_length is not None and len(ids) + max_new_tokens > max_length:
            raise InputError(
                f"prompts[{number}] has {len(ids)} tokens, which with "
                f"max_new_tokens={max_new_tokens} are more than the model's {max_length} "
                "positions; shorten it, or generate less."
            )


def source_ids(tokenizer, sources, end, longest, name, too_long):
    """Return the ids of each source of a translator, ending with the end token.

    Args:
        tokenizer: of the sources.
        sources: a list of strings.
        end: the id of their end token.
        longest: the most ids of a source; None for no limit.
        name: function from a source's number, from 0, to its name in errors and warnings.
        too_long: treatment of a source with more ids: "error" raises, "cut" drops those before
            the end token, and "skip" returns no ids. The number of cut or skipped sources is
            logged.

    Returns:
        A list of lists; empty ones for sources that are blank or skipped.

    Raises:
        InputError: if a source is not a string, or too long.
    """
    check_too_long(too_long)
    texts = as_texts(sources, "sources")
    rows = tokenizer.encode_closed(texts, end)
    kept = np.array([bool(text.strip()) for text in texts], bool)
    if longest is not None:
        is_long = rows.lengths > longest
        if too_long == "error" and is_long.any():
            first = int(is_long.argmax())
            raise InputError(
                f"{name(first)} has {rows.lengths[first]} tokens, more than the model's "
                f"{longest} positions; shorten it, or give too_long='cut' or 'skip'."
            )
        warn_of_long(is_long, "sources", name, f"the model's {longest} positions", too_long)
        if too_long == "skip":
            kept &= ~is_long
        rows = rows.truncate(longest, end)
    return [row.token_ids if keep else [] for row, keep in zip(rows, kept, strict=True)]


def forbidden_ids(tokenizer, words):
    """Return the `forbidden` ids of `Constraints` that exclude words.

    They are a tuple of tuples of ids: each word as tokenised at the beginning of a text, and after
    a space, where its tokens may differ.

    Raises:
        InputError: if a word is empty or has no token.
    """
    words = as_texts(words, "words")
    rows = plain_ids(tokenizer, [*words, *(f" {word}" for word in words)])
    for i, (word, ids) in enumerate(zip(words, rows, strict=False)):
        if not ids:
            raise InputError(
                f"words[{i}]={word!r} has no token that could be forbidden; leave it out."
            )
    return tuple(dict.fromkeys(map(tuple, rows)))
