"""The page in headless Chromium: pointer, keys, what a screen reader is told, and no request."""

import numpy as np
import pytest

from tests.browser import browser
from tests.plots.attentions import layer_of, text_of
from tfnlp.inspection import PositionTable
from tfnlp.plots import attention_page

TOKENS = ["[CLS]", "<b>fine</b>", "정말", "영화", "</script>", "[SEP]"]


@pytest.fixture(scope="module")
def shown():
    terms = ("c2c", "c2p")
    layers = [layer_of(2, 6, name=f"layer {i}", terms=terms, causal=i == 2) for i in (1, 2)]
    table = PositionTable("learned positions", [*"012345"], np.eye(6, 8, dtype="float32"))
    text = text_of(layers, TOKENS, ("a <b>fine</b>", "정말 영화"), [table])
    return text, text_of([layer_of(3, 70, name="layer 1")], texts=("a long text",))


@pytest.fixture(scope="module")
def page(shown, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    attention_page(list(shown)).save(folder / "attention.html")
    with browser(folder / "profile") as page:
        yield page.open(folder / "attention.html")


def readout(page):
    return page.js("document.getElementById('readout').textContent")


def cell(row, column):
    return f"table.heat tbody tr:nth-child({row}) td:nth-child({column + 1})"


def test_nothing_is_asked_for_and_the_policy_stops_nothing(page):
    page.js("document.documentElement.scrollHeight")
    assert [address.partition("://")[0] for address in page.addresses()] == ["file"]
    assert page.problems() == []
    # The policy itself: what a text might bring is not run.
    blocked = (
        "new Promise((done) => { document.addEventListener('securitypolicyviolation',"
        "(e) => done(e.effectiveDirective), { once: true });"
        "const s = document.createElement('script'); s.textContent = 'window.bad = 1';"
        "document.body.append(s); })"
    )
    assert page.js(blocked) == "script-src-elem" and page.js("window.bad") is None
    page.events.clear()


def test_the_pointer_names_layer_head_tokens_and_numbers(page, shown):
    layer = shown[0].layers[0]
    page.point(cell(3, 2))
    page.wait("document.getElementById('readout').textContent.includes('looks at')")
    weight = round(100 * layer.weights[0, 2, 1])
    said = readout(page)
    assert said.startswith(f"layer 1, head 1: “정말” looks at “<b>fine</b>”: {weight} %, score ")
    score = float(said.partition("score ")[2].partition(",")[0])
    assert score == pytest.approx(layer.scores[0, 2, 1], abs=0.06)
    assert "c2c" in said and "c2p" in said
    marked = "[...document.querySelectorAll('th.on')].map((e) => e.textContent)"
    assert page.js(marked) == ["<b>fine</b>", "정말"]
    page.point("table.heads tr:nth-child(2) td:nth-child(3) canvas")
    page.wait("document.getElementById('readout').textContent.startsWith('layer 2, head 2')")


def test_keys_move_in_the_table_and_between_heads(page):
    page.js(f"document.querySelector({cell(1, 1)!r}).focus()")
    page.key("ArrowDown", "ArrowRight")
    assert "“<b>fine</b>” looks at “<b>fine</b>”" in readout(page)
    page.key("End")
    assert "“<b>fine</b>” looks at “[SEP]”" in readout(page)
    page.key("Home", "ArrowLeft", "ArrowUp")
    assert "“[CLS]” looks at “[CLS]”" in readout(page)
    page.key(*["ArrowDown"] * 6)
    assert "“[CLS]” has " in readout(page) and "gradient × input" in readout(page)
    stops = "document.querySelectorAll('table.heat [tabindex=\"0\"]').length"
    assert page.js(stops) == 1  # Tab passes a table in one step
    page.js("document.querySelector('table.heads button[aria-pressed=true]').focus()")
    page.key("End", "Home")
    assert readout(page).startswith("layer 1, head 1. ")
    page.key("ArrowDown", "End", "Enter")
    title = "document.getElementById('head-title').textContent"
    assert page.js(title) == "layer 2, head 2: after the softmax"
    hidden = page.js("[...document.querySelectorAll('td.hidden')].map((e) => e.textContent)")
    assert hidden == ["–"] * 15  # what comes after a token, in words too
    page.js("choose({ row: 0, head: 0 })")


def test_numbers_are_text_and_headers_have_scopes(page, shown):
    rows = page.js(
        "[...document.querySelectorAll('table.heat tbody tr')].map((row) =>"
        "[...row.cells].map((cell) => cell.textContent))"
    )
    assert [row[0] for row in rows] == TOKENS
    expected = np.rint(100 * shown[0].layers[0].weights[0])
    assert np.abs(np.array([row[1:] for row in rows], float) - expected).max() <= 1
    scopes = "[...document.querySelectorAll('table.heat th')].map((e) => e.scope)"
    assert page.js(scopes) == ["col"] * 7 + ["row"] * 7
    page.js("choose({ view: 'c2p' })")
    found = page.js("document.querySelector('table.heat tbody td').textContent")
    assert float(found) == pytest.approx(shown[0].layers[0].terms["c2p"][0, 0, 0], abs=0.07)
    page.js("choose({ view: 'weights' })")
    korean = "[...document.querySelectorAll('table.heat [lang=ko]')].map((e) => e.textContent)"
    assert page.js(korean) == ["정말", "영화", "정말", "영화"]


def test_a_screen_reader_is_told_all(page):
    tree = page.accessible()
    names = {}
    for role, name in tree:
        names.setdefault(role, []).append(name)
    (grid,) = [name for name in names["grid"] if "layer 1" in name]
    sentence = "layer 1, head 1, after the softmax. It looks mostly at the previous token ("
    assert grid.startswith(sentence)
    assert names["columnheader"][-6:] == TOKENS and set(TOKENS) <= set(names["rowheader"])
    assert len(names["gridcell"]) >= 36
    heads = [name for name in names["button"] if "head" in name]
    assert len(heads) == 4 and heads[0].startswith("layer 1, head 1. It looks mostly at")
    assert {"Layer", "Head", "Numbers"} <= {name.strip() for name in names["combobox"]}
    assert names["status"] == ["Place under the pointer"]
    assert any(name.startswith("All heads") for name in names["table"])
    assert "Attention alone is no explanation." in names["StaticText"]
    assert page.js("document.documentElement.lang") == "en"


def test_a_long_text_does_not_widen_the_page(tmp_path):
    """Nor the list of texts; tokens of a table stay in sight, and hide no cell that keys reach."""
    texts = ("a long text " * 60, "w" * 500)
    shown = [text_of([layer_of(3, length)], texts=texts) for length in (70, 40)]
    attention_page(shown).save(tmp_path / "attention.html")
    with browser(tmp_path / "profile") as page:
        page.open(tmp_path / "attention.html")
        for width in (390, 1280):
            size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
            page("Emulation.setDeviceMetricsOverride", **size)
            assert page.js("document.documentElement.scrollWidth") <= width
            assert page.js("document.getElementById('text').offsetWidth") <= 640
        heights = page.js("[...document.querySelectorAll('header p')].map((e) => e.offsetHeight)")
        assert max(heights) < 200  # the whole text would take more
        seen = (
            "(() => { const e = document.activeElement, b = e.getBoundingClientRect();"
            "return [2, b.width - 2].every((x) => [2, b.height - 2].every((y) =>"
            "document.elementFromPoint(b.x + x, b.y + y) === e)); })()"
        )
        for text in (1, 0):
            page.js(f"choose({{ text: {text} }})")
            page.js("document.querySelector('table.heat td').focus()")
            for keys in (["ArrowDown"] * 36, ["End"], ["ArrowUp"] * 36, ["Home"]):
                page.key(*keys)
                assert page.js(seen), (text, keys[-1])
        page.js("document.querySelector('.frame').scrollTop = 900")
        place = "document.querySelector('.frame thead th').getBoundingClientRect().top"
        frame = "document.querySelector('.frame').getBoundingClientRect().top"
        assert page.js(place) == pytest.approx(page.js(frame), abs=2)
        names = [name for role, name in page.accessible() if role == "grid"]
        assert names[0].startswith("layer 1, head 1, after the softmax: the 10 largest")
        assert page.js("document.querySelectorAll('#panels .strip li').length") == 70
        page.js("document.querySelector('.frame td[data-rest]').focus()")
        assert "each other token on average" in readout(page)
        assert page.js("svgText()").count("<rect") == 1 + 70 * 11  # the rest of a row, and 10
        page.point("canvas.whole")
        page.wait("document.getElementById('readout').textContent.includes('looks at')")
