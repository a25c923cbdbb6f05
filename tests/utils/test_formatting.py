from tfnlp.utils.formatting import counted


def test_one_thing_is_no_things():
    assert counted(1, "text") == "1 text"
    assert counted(0, "text") == "0 texts"
    assert counted(12345, "text") == "12,345 texts"
    assert [counted(n, "batch", "batches") for n in (1, 2)] == ["1 batch", "2 batches"]
