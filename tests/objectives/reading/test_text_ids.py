"""Texts of files, encoded piece by piece."""

import gzip

import numpy as np
import pytest

from tfnlp.objectives import encode_texts, read_texts
from tfnlp.utils.errors import InputError

TEXTS = ["a fine film", "the plot is dull .", "unbelievable !", "not a dull film , is x"] * 3


def test_texts_are_read_from_lines_and_columns_without_holding_them(tokenizer, tmp_path):
    lines, table, packed = tmp_path / "a.txt", tmp_path / "b.tsv", tmp_path / "c.gz"
    lines.write_text("a fine film\n\n  \nthe plot\n")
    table.write_text("label\tsentence\n1\tis dull\n")
    with gzip.open(packed, "wt") as file:
        file.write("un film\n")
    texts = ["a fine film", "the plot", "is dull", "un film"]
    assert list(read_texts([lines, table, packed])) == texts
    empty = tmp_path / "empty.txt"
    for content, message in (
        ("", "empty.txt is empty; it needs"),
        ("\n \n", "holds no text, only"),
    ):
        empty.write_text(content)
        with pytest.raises(InputError, match=message):
            list(read_texts([lines, empty]))
    with pytest.raises(InputError, match="There is no text to train on"):
        encode_texts([], tokenizer, 8)


def test_pieces_of_texts_are_encoded_as_all_of_them(tokenizer, monkeypatch):
    monkeypatch.setattr("tfnlp.objectives.reading.text_ids.PIECE", 5)
    found, fingerprint = encode_texts(iter(TEXTS), tokenizer, 6)
    whole = tokenizer.encode_text_windows(TEXTS, 6)
    for name in ("token_ids", "segment_ids", "starts", "truncated"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    # A long text is several: nothing is lost.
    rows = [e.token_ids[1:-1] for e in found]
    assert max(map(len, rows)) == 4 and len(rows) > len(TEXTS)
    of_texts = [i for e in tokenizer.encode(TEXTS) for i in e.token_ids[1:-1]]
    assert [i for row in rows for i in row] == of_texts
    assert encode_texts(TEXTS, tokenizer, 6)[1] == fingerprint
    assert encode_texts(TEXTS[1:], tokenizer, 6)[1] != fingerprint
    # What looks like a special token in a text is text.
    (written,) = encode_texts(["a [SEP] film [MASK]"], tokenizer, 20)[0]
    special = {tokenizer.mask_token_id, tokenizer.encode(["a"])[0].token_ids[-1]}
    assert special.isdisjoint(written.token_ids[1:-1])
