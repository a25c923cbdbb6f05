from tfnlp.utils.formatting import counted, one_line


def test_one_thing_is_no_things():
    assert counted(1, "text") == "1 text"
    assert counted(0, "text") == "0 texts"
    assert counted(12345, "text") == "12,345 texts"
    assert [counted(n, "batch", "batches") for n in (1, 2)] == ["1 batch", "2 batches"]


def test_a_text_on_one_line_keeps_its_offsets():
    text = "a\tb\r\nc\u2028d\x85 \u3000e"
    assert one_line(text) == "a b  c d  \u3000e" and len(one_line(text).splitlines()) == 1
