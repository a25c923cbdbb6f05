"""Prompts as ids, and what was written after them as text again."""

import dataclasses

from tfnlp.errors import InputError
from tfnlp.searches import Beam, Sample


@dataclasses.dataclass(frozen=True)
class Generated:
    """A text that was written.

    Args:
        text: what comes after the prompt, or of a source.
        token_ids: its ids, a tuple, without the end token.
        ended: whether the model ended it, before the greatest length.
        score: of a beam search (`Beam`), else None.
    """

    text: str
    token_ids: tuple
    ended: bool
    score: float | None


def blank_texts(how):
    """What is made of a blank source, of which a model writes too: as many texts as of others.

    Args:
        how: a `Greedy`, `Beam` or `Sample`.

    Returns:
        A list of `Generated` without text.
    """
    if isinstance(how, Beam):
        return [Generated("", (), True, 0.0)] * how.best
    return [Generated("", (), True, None)] * (how.texts if isinstance(how, Sample) else 1)


def unframed_ids(tokenizer, texts, before, after):
    """The ids of texts, a list for each, without what frames a text.

    Args:
        tokenizer: from `tfnlp.text`.
        texts: a list of strings.
        before: how many special tokens the tokenizer puts before a text.
        after: how many after it.
    """
    rows = (list(encoding.token_ids) for encoding in tokenizer.encode(texts))
    return [ids[before : len(ids) - after] for ids in rows]


def continuation(tokenizer, prompt, written):
    """The text of ids that were written after others, cut off behind the text of those.

    Args:
        tokenizer: from `tfnlp.text`.
        prompt: ids.
        written: ids.
    """
    before, whole = tokenizer.decode([*prompt]), tokenizer.decode([*prompt, *written])
    return whole[len(before) :] if whole.startswith(before) else tokenizer.decode([*written])


def check_prompts(prompts, max_new_tokens, max_length):
    """Raises an InputError for prompts without a token, and those too long for a model.

    Args:
        prompts: a list of lists of ids.
        max_new_tokens: the most that are written after each.
        max_length: the model's positions, or None where there is no limit.
    """
    for number, ids in enumerate(prompts):
        if not len(ids):
            raise InputError(f"prompts[{number}] has no token; give at least one.")
        if max_length is not None and len(ids) + max_new_tokens > max_length:
            left = max_length - len(ids)
            hint = f"or give max_new_tokens={left}" if left > 0 else "it alone is too long"
            raise InputError(
                f"prompts[{number}] has {len(ids)} tokens, which with "
                f"max_new_tokens={max_new_tokens} are more than the model's {max_length} "
                f"positions; shorten it ({hint})."
            )
