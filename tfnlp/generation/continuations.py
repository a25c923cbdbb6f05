"""Prompts as ids, and generated ids as text."""

import dataclasses

from tfnlp.generation.generation_settings import Beam, Sample
from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True)
class Generated:
    """A generated text.

    Args:
        text: the continuation of a prompt, or the output for a source.
        token_ids: its ids, a tuple, without the end token.
        ended: whether the model generated the end token before the length limit.
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
