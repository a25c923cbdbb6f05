"""Prompts as ids, and generated ids as text."""

import pytest

from tests.text.family_tokenizers import tokenizer_of
from tfnlp.generation.continuations import blank_texts, check_prompts, continuation
from tfnlp.generation.generation_settings import Beam, Greedy, Sample
from tfnlp.text.tokenizers.special_tokens import plain_ids
from tfnlp.utils.errors import InputError


def test_a_continuation_is_the_text_behind_the_prompt():
    tokenizer = tokenizer_of("roberta")
    text = "the 영화 fox"
    framed = tokenizer.encode([text])[0].token_ids
    (ids,) = plain_ids(tokenizer, [text])
    assert ids == framed[1:-1]
    for end in range(len(ids)):
        # Within a character the text of a prompt ends in U+FFFD, and is no start of the whole.
        prompt, rest = (tokenizer.decode(part) for part in (ids[:end], ids[end:]))
        found = continuation(tokenizer, ids[:end], ids[end:])
        assert found == (rest if "\ufffd" in prompt else text.removeprefix(prompt))


def test_a_blank_source_has_as_many_outputs_as_any():
    counts = [len(blank_texts(s)) for s in (Greedy(), Beam(3, best=2), Sample(texts=4))]
    assert counts == [1, 2, 4]
    assert [blank_texts(s)[0].score for s in (Greedy(), Beam(3))] == [None, 0.0]


def test_prompts_have_tokens_and_leave_room():
    check_prompts([[1], [1, 2]], 3, 5)
    check_prompts([[1, 2]], 30, None)
    with pytest.raises(InputError, match=r"prompts\[1\] has no token"):
        check_prompts([[1], []], 3, 5)
    with pytest.raises(InputError, match=r"prompts\[0\] has 2 tokens, .*=4 are more than .* 5 "):
        check_prompts([[1, 2]], 4, 5)
