"""Charts of the tables that pages mark."""

import types

from docs.figures import draw_marked_tables

TABLE = """\
| file | MB | accuracy |
| --- | --- | --- |
| `float32` | 1,830.5 | 81.25 ± 0.5 |
| **int4** | 4.22 MB, a tenth | |
"""


def test_a_marked_table_gets_a_picture_and_stays(tmp_path):
    app = types.SimpleNamespace(srcdir=tmp_path)
    page = f"Before.\n\n<!-- figure 2 3: Sizes. From 1,830\nto 4.2 MB. -->\n\n{TABLE}\n{TABLE}"
    source = [page]
    draw_marked_tables(app, "results/compression", source)
    picture = (
        "```{image} /_pictures/results_compression_1.svg\n"
        ":alt: Sizes. From 1,830 to 4.2 MB.\n:class: chart\n```\n\n"
    )
    assert source[0] == f"Before.\n\n{picture}{TABLE}\n{TABLE}"
    drawing = (tmp_path / "_pictures" / "results_compression_1.svg").read_text()
    for text in ("Sizes", "float32", "int4", "1,830.5", "81.25", "accuracy"):
        assert f"<!-- {text} -->" in drawing
