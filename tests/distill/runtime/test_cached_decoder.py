"""Decoding over the caches of a file."""

import numpy as np

from distill.runtime.cached_decoder import chunks


def test_a_prompt_is_read_in_chunks_without_padding():
    ids = np.arange(10, 31)
    whole = [(0, 16, list(range(10, 26))), (17, 4, list(range(27, 31)))]
    found = [(first, n, list(some)) for first, n, some in chunks(ids[:20], [4, 16])]
    assert found == [(0, 16, list(range(10, 26))), (16, 4, list(range(26, 30)))]
    found = [(first, n, list(some)) for first, n, some in chunks(ids, [4, 16])]
    assert found[0] == whole[0] and found[1] == (5, 16, list(range(15, 31)))
    assert [(f, n, list(s)) for f, n, s in chunks(ids[:2], [4])] == [(0, 4, [10, 11, 0, 0])]
    assert chunks(ids[:0], [4]) == []
