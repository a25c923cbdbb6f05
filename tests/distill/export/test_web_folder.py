"""A file in Chromium: the ids, answers and page of the folder that export_tflite --web writes."""

import functools
import http.server
import json
import shutil
import subprocess
import threading

import pytest

from distill.export import Export, check_web, export_tflite, web_options
from distill.export.web_folder import SOURCES, build_page, character_rules, write_model
from distill.runtime import load_runner
from tests.browser import browser
from tests.distill.export.phone_files import NFKC_RULES
from tests.distill.export.test_mobile_text import (
    ODD,
    hostile,
    sentences,
    spelled,
    with_each_normalizer,
)
from tfnlp.checkpoints import load_model, read_labels, read_task_settings
from tfnlp.tasks.kinds import ANSWERER, CHOOSER, CLASSIFIER, EMBEDDER, TAGGER
from tfnlp.text import UnigramTokenizer, WordPieceTokenizer, train_unigram
from tfnlp.utils.errors import InputError

KINDS = ("classifier", "multi-label classifier", "tagger", "answerer", "embedder")


@pytest.fixture(scope="module")
def site(files, folders, tokenizer, tmp_path_factory):
    """(address, folder of a page for each kind), served."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: it comes with Node.js")
    place = tmp_path_factory.mktemp("web")
    try:
        build_page(place / "page")
    except InputError as e:
        pytest.skip(f"the page cannot be built: {e}")
    embedder = place / "embedder.tflite"
    model = load_model(folders["classifier"], "classifier")
    export_tflite(model, embedder, tokenizer, options=Export("float32", pooling="mean"))
    fitting = {"embedder": embedder}
    for kind in (TAGGER, ANSWERER):
        fitting[kind.name], folder = place / f"{kind}.tflite", folders[kind.name]
        options = web_options(Export("float32", max_length=24, fixed_lengths=(10,)), kind)
        parts = load_model(folder, kind.head), fitting[kind.name], tokenizer
        settings = read_task_settings(folder)
        export_tflite(*parts, read_labels(folder), options, task_settings=settings)
    for kind in KINDS:
        shutil.copytree(place / "page", place / kind)
        write_model(fitting.get(kind, files.get(kind)), place / kind, f"A small {kind}")
    handler = functools.partial(_Quiet, directory=place)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", place
        server.shutdown()
        thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def xlm_r():
    """XLM-R's tokenizer as transformers 5 writes it, with pieces of a few texts."""
    trained = train_unigram([*sentences(4, 200), *ODD], 300, "xlm-roberta")
    return UnigramTokenizer(trained.pieces, "xlm-roberta", rules=NFKC_RULES)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


def opened(page, site, kind):
    """Open the page of a kind, and wait until its model is there."""
    page.open(f"{site[0]}/{kind}/index.html".replace(" ", "%20"))
    page.wait("document.querySelector('#status').textContent.startsWith('The model')")
    page.wait("!document.querySelector('#status').textContent.endsWith('loading.')")
    return page


def results(page, inputs):
    """Return what the module answers to (text,) or (text, second text)."""
    return page.js(
        "(async () => { const { loadModel } = await import('./tfnlp.js');"
        "window.model ??= await loadModel(); const results = [];"
        f"for (const texts of {json.dumps(inputs)}) results.push(await model.run(...texts));"
        "return results; })()"
    )


@with_each_normalizer
def test_ids_are_the_tokenizers(options, site, page):
    texts = [*ODD, *sentences(0, 6), *hostile(150)]
    check_ids(page, site, texts, spelled(texts, options))


def test_ids_of_xlm_rs_pieces_are_the_tokenizers(xlm_r, site, page):
    check_web(EMBEDDER, xlm_r)
    odd = [
        "<s> a",
        "film<mask>",
        "ﬁ ㎏ ｶﾞ 각 한\u0301",
        "㋿ \U0001fbf0",
        "a\u200bb\u2581c",
        " a  b ",
    ]
    texts = [*odd, *ODD, *sentences(0, 6), *hostile(150)]
    check_ids(page, site, texts, xlm_r)


def check_ids(page, site, texts, tokenizer):
    opened(page, site, "classifier")
    parts = {"json": json.loads(tokenizer.to_json()), "rules": character_rules(tokenizer)}
    (site[1] / "classifier" / "parts.json").write_text(json.dumps(parts | {"texts": texts}))
    rows = page.js(
        "(async () => { const { encode, readPieces } = await import('./tfnlp.js');"
        "const file = await fetch('parts.json', { cache: 'no-store' });"
        "const { json, rules, texts } = await file.json();"
        "const pieces = readPieces(json, rules);"
        "return texts.flatMap((text, i) => [encode(pieces, 24, text),"
        "encode(pieces, 24, text, texts[texts.length - 1 - i])]"
        ".map(({ row, truncated }) => [row.ids, row.segmentIds, truncated])); })()"
    )
    singles = tokenizer.encode(texts, max_length=24)
    pairs = tokenizer.encode(texts, texts[::-1], max_length=24)
    for i, text in enumerate(texts):
        for encodings, row in ((singles, rows[2 * i]), (pairs, rows[2 * i + 1])):
            expected = [[*encodings[i].token_ids], [*encodings[i].segment_ids]]
            assert row == [*expected, bool(encodings.truncated[i])], ascii(text)


@pytest.mark.parametrize("kind", ["classifier", "multi-label classifier", "embedder"])
def test_labels_and_vectors_are_the_runtimes(kind, site, page):
    texts = [*sentences(1, 30), *ODD]
    runner = load_runner(site[1] / kind / "model.tflite")
    expected = runner.predict(texts)
    for result, answer in zip(
        results(opened(page, site, kind), [[t] for t in texts]), expected, strict=True
    ):
        if kind == "embedder":
            assert result["embedding"] == pytest.approx([*answer], abs=1e-4)
            continue
        assert result["probabilities"] == pytest.approx([*answer.probabilities.values()], abs=1e-4)
        assert result["truncated"] == answer.truncated
        chosen = "label" if kind == "classifier" else "labels"
        expected = getattr(answer, chosen)
        assert result[chosen] == (expected if kind == "classifier" else [*expected])
    assert sum(result["truncated"] for result in results(page, [[t] for t in texts])) > 3


def places(text, spans):
    """Return spans in code points as places in UTF-16."""
    return [tuple(len(text[:i].encode("utf-16-le")) // 2 for i in span) for span in spans]


@pytest.mark.parametrize("unit", ["word", "character"])
def test_tags_are_the_runtimes(unit, site, page, files):
    runner = load_runner(files["tagger"])
    page = opened(page, site, "tagger")
    if unit == "character":
        runner.settings = {"unit": "character", "stride": 4}
        results(page, [])
        page.js(f"model.settings.task = {json.dumps(runner.settings)}")
    texts = [*sentences(2, 40), *ODD]
    for text, result in zip(texts, results(page, [[t] for t in texts]), strict=True):
        (expected,) = runner.predict([text])
        tags = result["tags"]
        assert [tag["tag"] for tag in tags] == expected.tags, text
        spans = [(tag["start"], tag["end"]) for tag in tags]
        assert spans == places(text, expected.spans)
        assert [tag["text"] for tag in tags] == expected.words
        assert [tag["score"] for tag in tags] == pytest.approx(expected.scores, abs=1e-4)


@pytest.mark.parametrize("nulls", [False, True])
def test_answers_are_the_runtimes(nulls, site, page, files):
    runner = load_runner(files["answerer"])
    runner.settings = runner.settings | {"null_answers": nulls, "stride": 5}
    page = opened(page, site, "answerer")
    results(page, [])
    page.js(f"Object.assign(model.settings.task, {json.dumps(runner.settings)})")
    contexts = [*sentences(3, 60), "cafe\u0301 film 🙂 a fine film", ""]
    questions = ["what film ?", "unbelievable zzz x"] * 7
    pairs = [*map(list, zip(questions, contexts, strict=True))]
    answers = runner.predict(questions, contexts)
    for (_, text), answer, result in zip(pairs, answers, results(page, pairs), strict=True):
        assert result["text"] == answer.text
        span = [(answer.start, answer.end)]
        assert [(result["start"], result["end"])] == places(text, span)
        for name in ("score", "probability"):
            assert result[name] == pytest.approx(getattr(answer, name), abs=1e-4)
        assert result["truncated"] == answer.truncated


def typed(page, **texts):
    """Type texts into the fields, press the button by the keyboard, and return the sentences."""
    for field, text in texts.items():
        page.js(f"document.querySelector('#{field}').value = {json.dumps(text)}")
    page.js("document.querySelector('#status').textContent = ''")
    page.js("document.querySelector('button').focus()")
    page.key("Enter")
    page.wait("document.querySelector('#status').textContent")
    return page.js("document.querySelector('main').innerText")


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_answers_what_is_typed_and_asks_no_other_server(kind, site, page):
    opened(page, site, kind)
    texts = {"text": "정말 좋다 film"}
    texts |= {"second": "the film is fine"} if kind in ("answerer", "embedder") else {}
    said = typed(page, **texts)
    sentence = {"tagger": "Tags: 3", "answerer": "Answer: ", "embedder": "Cosine similarity: "}
    assert sentence.get(kind, "Label") in said and "Done in" in said
    if kind != "tagger":
        field = "text"
        assert "beginning" in typed(page, **texts | {field: "film " * 40})
    assert not page.problems()
    assert all(address.startswith(site[0]) or address == "data:," for address in page.addresses())
    boxes = [name for role, name in page.accessible() if role == "textbox"]
    assert len(boxes) == len(texts) and all(boxes)
    assert ("heading", f"A small {kind}") in page.accessible()
    assert page.js("document.documentElement.lang") == "en"


def test_the_page_says_in_a_sentence_what_it_cannot_run(site, page):
    whole = json.loads((site[1] / "classifier" / "tokenizer.json").read_text())
    settings = json.loads((site[1] / "classifier" / "settings.json").read_text())
    for name, content, words in (
        ("settings.json", settings | {"kind": "chooser"}, 'kind "chooser"'),
        ("tokenizer.json", whole | {"model": {"type": "Words"}}, "cannot be read"),
        ("tokenizer.json", None, "serve the whole folder"),
        ("settings.json", settings, "no WebAssembly SIMD"),
    ):
        folder = site[1] / words.replace(" ", "").replace('"', "")
        shutil.copytree(site[1] / "classifier", folder)
        (folder / name).unlink(missing_ok=True)
        if content is not None:
            (folder / name).write_text(json.dumps(content))
        script = "WebAssembly.validate = () => false" if "SIMD" in words else ""
        page.open(f"{site[0]}/{folder.name}/index.html", script=script)
        page.wait("!/loading|http.server/.test(document.querySelector('#status').textContent)")
        assert words in page.js("document.querySelector('#status').textContent")
    page.open(site[1] / "classifier" / "index.html")
    assert "python -m http.server" in page.js("document.querySelector('#status').textContent")


def test_models_that_the_page_lacks_are_refused(tokenizer, xlm_r, monkeypatch):
    with pytest.raises(InputError, match="chooser"):
        check_web(CHOOSER, tokenizer)
    with pytest.raises(InputError, match="tagger"):
        check_web(TAGGER, xlm_r)
    with pytest.raises(InputError, match="NFKC"):
        check_web(CLASSIFIER, train_unigram(["a film"] * 9, 30, "albert"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match=r"npm.*Node\.js"):
        check_web(CLASSIFIER, tokenizer)


def test_rules_of_code_points_read_as_the_tokenizer():
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    rules = character_rules(tokenizer)
    ranges = {
        reading: [*zip(places[::2], places[1::2], strict=True)]
        for reading, places in rules["ranges"].items()
    }
    assert rules["changed"]["É"] == "e" and rules["changed"]["\uf900"] == " \u8c48 "
    assert (0xAC00, 0xD7A3) in ranges["NFD"]
    assert (0x4E00, 0x9FFF) in ranges[" @ "] and (0x21, 0x2F) in ranges[" @ "]
    assert (0xD800, 0xF8FF) in ranges[""]


def test_the_sources_pass_their_types_and_tests():
    if not (SOURCES / "node_modules/.bin/tsc").exists():
        pytest.skip("TypeScript is not installed: make web")
    for arguments in (["run", "check"], ["test"]):
        subprocess.run(["npm", *arguments], cwd=SOURCES, check=True)
