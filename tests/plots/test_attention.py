"""The page keeps the model's numbers within 8 bits, and texts stay texts."""

import base64
import dataclasses
import html.parser
import json
import re

import numpy as np
import pytest

from tests.plots.attentions import layer_of, text_of
from tfnlp.plots import attention_page
from tfnlp.plots.attention_data import KEPT, LONG, pack_text, quantize

HOSTILE = ["</script><script>x()</script>", "'\"&amp;<!--", "\u2028", "정말"]


def decoded(text, dtype="uint8"):
    return np.frombuffer(base64.b64decode(text), dtype)


def view_of(entry, name, shape):
    view = entry["views"][name]
    low, high = (np.array(view[end])[:, None, None] for end in ("low", "high"))
    return low + decoded(view["data"]).reshape(shape) / 255 * (high - low)


def test_numbers_decode_to_the_models_within_a_step():
    layer = layer_of(3, 9, terms=("c2c", "c2p"), causal=True)
    packed, patterns = pack_text(text_of([layer]))
    (entry,) = packed["entries"]
    shape = layer.weights.shape
    assert np.abs(view_of(entry, "weights", shape) - layer.weights).max() <= 0.5 / 255 + 1e-6
    for name, values in {"scores": layer.scores, **layer.terms}.items():
        spread = np.ptp(values[layer.visible])
        error = np.abs(view_of(entry, name, shape) - values)[layer.visible].max()
        assert error <= spread / 255
    hidden = np.unpackbits(decoded(entry["hidden"]))[: 9 * 9].reshape(9, 9).astype(bool)
    assert (hidden == ~layer.visible[0]).all()
    assert np.sum(list(entry["shares"].values()), axis=0) == pytest.approx(1, abs=1e-3)
    assert np.abs(entry["saliency"]).sum(1) == pytest.approx(1, abs=1e-2)
    assert len(patterns) == 3
    assert quantize(np.array([0.0, 0.5, 1.0]), 0.0, 1.0).tolist() == [0, 128, 255]
    assert quantize(np.array([2.0, 2.0]), 2.0, 2.0).tolist() == [0, 0]  # a constant has no span


def test_long_rows_keep_their_top_entries():
    layer = layer_of(2, LONG + 1)
    (entry,) = pack_text(text_of([layer]))[0]["entries"]
    shape = (2, LONG + 1, KEPT)
    index = decoded(entry["index"], "<u2").reshape(shape)
    kept = np.take_along_axis(layer.weights, index.astype(int), -1)
    np.testing.assert_array_equal(kept, -np.sort(-layer.weights, -1)[..., :KEPT])
    # The roots of weights, so that a 500th is more than nothing.
    assert np.abs(view_of(entry, "weights", shape) - kept**0.5).max() <= 0.5 / 255 + 1e-6
    # The mean of the others, without which a flat row would look like its largest entries alone.
    rest = decoded(entry["views"]["weights"]["rest"]).reshape(shape[:2]) / 255
    others = (layer.weights.sum(-1) - kept.sum(-1)) / (LONG + 1 - KEPT)
    np.testing.assert_allclose(rest, others**0.5, atol=0.5 / 255 + 1e-6)
    whole = len(layer_of(2, LONG).weights.ravel())
    assert len(entry["views"]["weights"]["data"]) < whole / 4


def test_a_flat_row_of_a_long_text_has_the_same_shade_everywhere():
    """Beside a row that looks at one token, of whose scale a 500th is nothing."""
    layer = layer_of(1, 500)
    weights = np.random.default_rng(0).uniform(0.99, 1.01, layer.weights.shape) / 500
    weights[0, 0] = np.eye(500)[7]
    (entry,) = pack_text(text_of([dataclasses.replace(layer, weights=weights)]))[0]["entries"]
    view = entry["views"]["weights"]
    kept = decoded(view["data"]).reshape(500, KEPT)[1:]
    rest = decoded(view["rest"])[1:, None]
    assert np.abs(kept.astype(int) - rest).max() <= 1 and rest.min() > 0


def test_what_may_not_be_seen_has_no_part_in_the_rest():
    layer = layer_of(1, LONG + 6, causal=True)
    (entry,) = pack_text(text_of([layer]))[0]["entries"]
    view = entry["views"]["scores"]
    (low,), (high,) = view["low"], view["high"]
    rest = low + decoded(view["rest"]) / 255 * (high - low)
    seen = layer.visible[0, -1].copy()
    seen[decoded(entry["index"], "<u2").reshape(-1, KEPT)[-1]] = False
    assert rest[-1] == pytest.approx(layer.scores[0, -1][seen].mean(), abs=(high - low) / 255)


def test_streams_and_teachers_stand_side_by_side():
    streams = [layer_of(2, 4, stream=stream) for stream in ("content", "query")]
    assert pack_text(text_of(streams * 2))[0]["rows"] == [[0, 1], [2, 3]]
    student = text_of([layer_of(2, 4, name=f"layer {i}") for i in (1, 2)])
    teacher = text_of([layer_of(3, 5, name=f"layer {i}") for i in (1, 2, 3, 4)])
    packed, patterns = pack_text(student, teacher, [1, 3])
    assert packed["rows"] == [[0, 1], [2, 3]] and len(patterns) == 4
    names = [(e["name"], e["rows"]) for e in packed["entries"]]
    assert names[0] == ("layer 1", "tokens")
    assert [name for name, _ in names[1::2]] == ["teacher's layer 2", "teacher's layer 4"]
    assert len(packed["tokens"][names[1][1]]) == 5


class Elements(html.parser.HTMLParser):
    """Tags and attributes of a page, and its policy."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))


def test_texts_cannot_leave_their_places():
    layer = layer_of(1, 4)
    shown = text_of([layer], tokens=HOSTILE, texts=("".join(HOSTILE),))
    page = attention_page(shown, title=HOSTILE[0]).html
    elements = Elements(page)
    assert elements.tags.count("script") == 2 and "x()</script>" not in page
    data = re.search(r'id="data">(.*?)</script>', page, re.S).group(1)
    assert json.loads(data)["texts"][0]["tokens"]["tokens"] == HOSTILE
    # Attributes that would run or load something, and styles that the policy would stop.
    names = {name for _, attributes in elements.attributes for name in attributes}
    assert not names & {"src", "href", "style"} and not any(n.startswith("on") for n in names)
    policy = next(a["content"] for _, a in elements.attributes if "http-equiv" in a)
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert policy.count("'sha256-") == 2
    assert ("q", {"lang": "ko"}) in elements.attributes
    frame = Elements(attention_page(shown)._repr_html_())
    ((tag, attributes),) = frame.attributes
    assert tag == "iframe" and attributes["srcdoc"] == attention_page(shown).html
    assert attributes["sandbox"] == "allow-scripts allow-downloads"


def test_a_page_tells_its_size_and_has_a_picture_without_scripts(tmp_path):
    answered = dataclasses.replace(text_of([layer_of(2, 6)]), answer="good (94.0 %)")
    page = attention_page([answered] * 2)
    page.save(tmp_path / "a.html")
    size = (tmp_path / "a.html").stat().st_size / 1e6
    assert f"holds all of it, {size:.1f} MB" in page.html
    assert page.svg in page.html.partition("<noscript>")[2].partition("</noscript>")[0]
    assert page.svg.count("<path") >= 2 and "<title>Mean attention" in page.svg
    assert all(line.startswith("The model's answer: good (94.0 %). ") for line in page.summary)
    # In text, and in the data.
    assert page.html.count("Of 2 heads, 1 looks mostly at the previous token") == 2 + 2
