"""Encodings as flat arrays."""

import numpy as np
import pytest

from tfnlp.text import Encoding, Encodings, LengthBatches


def test_encodings_are_a_sequence_of_few_bytes(tokenizer):
    texts = ["the film is not dull , a fine plot ."] * 1000
    found = tokenizer.encode(texts)
    assert len(found) == 1000 and found[-1] == found[999] == next(iter(found))
    assert found[998:] == [found[0]] * 2 and found[np.int64(3)].token_ids == found[3].token_ids
    with pytest.raises(IndexError):
        found[1000]
    arrays = (found.token_ids, found.segment_ids, found.starts, found.truncated)
    assert sum(a.nbytes for a in arrays) == 1000 * (12 * 5 + 8 + 1) + 8
    again = Encodings.from_list(list(found))
    for name in ("token_ids", "segment_ids", "starts", "truncated"):
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))


def test_batches_of_encodings_and_of_lists_are_the_same(tokenizer):
    prompts, endings = ["the film"] * 4, ["is dull", "is not a fine plot", "", "."]
    found = tokenizer.encode(prompts, endings)
    rows = list(found)
    for given, listed in (
        (found, rows),
        (Encodings.from_list([rows[:2], rows[2:]]), [tuple(rows[:2]), tuple(rows[2:])]),
    ):
        groups = [x if isinstance(x, tuple) else (x,) for x in listed]
        lengths = [max(len(e.token_ids) for e in group) for group in groups]
        assert list(Encodings.from_list(given).lengths) == lengths
        order = np.array([1, 0])
        a, b = (LengthBatches(x, 2, pad_token_id=9).batch(order)[0] for x in (given, listed))
        for key in a:
            np.testing.assert_array_equal(a[key], b[key])
    assert a["token_ids"].shape == (2, 2, 10)
    np.testing.assert_array_equal(a["token_ids"][0, 1], [2, 10, 7, 3, 12, 3, 9, 9, 9, 9])


def test_groups_of_different_sizes_are_refused():
    row = Encoding([1], [0])
    with pytest.raises(ValueError, match=r"encodings\[1\] has 1 choices and encodings\[0\] 2"):
        Encodings.from_list([[row] * 2, [row], [row] * 3])
