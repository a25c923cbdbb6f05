"""What is held out of texts."""

import pytest

from tfnlp.corpora.held_out import hold_out
from tfnlp.utils.errors import InputError


def test_what_is_held_out():
    texts = ["ab\ncd\nef\n", "g" * 11]  # 20 characters, of which 18 are to stay
    assert hold_out(texts) == ([texts[0], "g" * 9], ["gg"])
    assert hold_out(["aaaa\nbb\ncccc\nddddddd"]) == (["aaaa\nbb\ncccc\n"], ["ddddddd"])
    with pytest.raises(InputError, match="too short to hold out a tenth"):
        hold_out(["a"])
