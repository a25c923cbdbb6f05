"""Pages have one style, policies that fit their parts, and texts that stay texts."""

import base64
import hashlib
import re

import pytest

from tfnlp.plots import html_page, html_table, svg_of


def test_the_policy_names_the_script_and_the_style_that_are_there():
    page = html_page("<T>", "<p>x</p>", "q { color: red }", "alert('<')", {"a": "</script>"})
    policy = re.search(r'Policy" content="([^"]*)"', page).group(1).split("; ")
    assert policy[:3] == ["default-src 'none'", "base-uri 'none'", "form-action 'none'"]
    for tag, rule in (("style", policy[3]), ("script", policy[4])):
        text = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.S).group(1)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rule == f"{tag}-src 'sha256-{digest}'"
    assert '{"a":"\\u003c/script>"}' in page and "<title>&lt;T&gt;</title>" in page
    plain = html_page("T", "")
    assert "style-src 'unsafe-inline'\"" in plain and "script" not in plain


def test_tables_have_scopes_captions_and_languages():
    table = html_table([["layer", "n<"], ["정말", "1"], ["b", "2"]], "a & b", marked=[1])
    assert '<th scope="col">n&lt;</th>' in table and "<caption>a &amp; b</caption>" in table
    assert '<tr><th scope="row"><span lang="ko">정말</span></th><td>1</td></tr>' in table
    assert '<tr class="best"><th scope="row">b</th><td>2</td></tr>' in table


def test_pictures_take_the_readers_colours_and_are_the_same_twice():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    def picture():
        figure = Figure()
        figure.add_subplot(title="t").plot([1, 2])
        return svg_of(figure, "a & b")

    svg = picture()
    assert svg == picture() and svg.startswith('<svg role="img" aria-label="a &amp; b"')
    assert "currentColor" in svg and "#000000" not in svg and "#ffffff" not in svg
