"""Files of generated texts."""

import json

from tfnlp.generation import Generated
from tfnlp.generation.generated_output import write_generated


def test_each_text_is_written_on_a_line(tmp_path):
    texts = [Generated(" is\n\tgood.", (5, 6), True, -0.25), Generated(" is", (5,), False, None)]
    write_generated(tmp_path / "written.tsv", ["it"], [texts])
    header, *rows = (tmp_path / "written.tsv").read_text().splitlines()
    assert header == "prompt\ttext\tended\tscore"
    assert rows == ["it\t is  good.\tyes\t-0.250000", "it\t is\tno\t"]
    write_generated(tmp_path / "written.jsonl", ["it"], [texts])
    first, second = (tmp_path / "written.jsonl").read_text().splitlines()
    assert json.loads(first) == {
        "prompt": "it",
        "text": " is\n\tgood.",
        "token_ids": [5, 6],
        "ended": True,
        "score": -0.25,
    }
    assert json.loads(second)["score"] is None
