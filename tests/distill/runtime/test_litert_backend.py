"""What a device meets: damaged files, odd texts, threads, and no TensorFlow."""

import concurrent.futures
import dataclasses
import json
import sys
import tomllib
import zipfile

import numpy as np
import pytest

from distill.export.options import Export
from distill.export.tflite import export_tflite
from distill.runtime import (
    EndingChooser,
    QuestionAnswerer,
    SentenceScorer,
    StringClassifier,
    TextClassifier,
    TokenTagger,
    load_runner,
)
from distill.runtime.associated_files import SETTINGS_FILE, add_files
from tests.distill.runtime.test_associated_files import ROOT, run
from tests.requirements import installed_modules, read_requirements
from tfnlp.models import build_model
from tfnlp.pipelines.pipeline import PIPELINES
from tfnlp.text.decoding.answers import best_answers
from tfnlp.text.decoding.character_tags import best_character_tags
from tfnlp.text.decoding.tags import best_rows
from tfnlp.utils.errors import InputError

OURS = ("distill", "recipes", "tfnlp")  # the packages of the distribution
TEXTS = ["a fine film", "", "   ", "정말 지루하다", "the film is not dull , " * 5]
STRINGS = ["a fine film", "", "정말 좋다!", "the\tplot\x00 is\x07 dull, 字 film", "zzz", "x " * 60]


def test_a_file_is_run_by_the_pipeline_of_its_kind(files):
    runners = {kind: load_runner(path) for kind, path in files.items()}
    assert {kind: type(runner) for kind, runner in runners.items()} == {
        kind: PIPELINES[kind] for kind in files
    }
    prompt, endings = "the film is", ["dull", "fine", "not a plot"]
    choice = runners["chooser"].choose(prompt, endings)
    encodings = runners["chooser"].tokenizer.encode([prompt] * 3, endings)
    scores = [outputs["score"][0] for outputs in runners["chooser"].backend.run(encodings)]
    assert choice.place == int(np.argmax(scores)) and choice.ending == endings[choice.place]
    chances = np.exp(scores) / np.sum(np.exp(scores))
    np.testing.assert_allclose(choice.probabilities, chances, rtol=1e-5)
    assert runners["chooser"].choose(prompt, ["dull"]).probabilities == [1.0]
    choices = runners["chooser"].choose_all(["the film " * 20, prompt], [endings] * 2)
    assert [choice.truncated for choice in choices] == [True, False]


def test_words_and_their_entities_have_places_in_the_text(files):
    tagger = TokenTagger(files["tagger"])
    text = " (a fine film.)  정말 좋다!"
    (tagged,) = tagger.predict(text)
    assert tagged.text == text
    expected = ["(", "a", "fine", "film", ".", ")", "정말", "좋다", "!"]
    assert tagged.words == [word for word, _ in tagger.tag(text)[0]] == expected
    assert [text[start:end] for start, end in tagged.spans] == expected
    (by_words,) = tagger.predict([expected])
    assert by_words.text == " ".join(expected) and by_words.words == expected
    assert (by_words.tags, by_words.scores) == (tagged.tags, tagged.scores)
    assert tagger.predict(iter([text])) == [tagged]
    (window,) = tagger.tokenizer.encode_words([expected], 24)
    rows = tagger.backend.run_one(window)["probability"]
    first = {word: place for place, word in reversed([*enumerate(window.words)])}
    for i, (tag, score) in enumerate(zip(tagged.tags, tagged.scores, strict=True)):
        assert tag == tagger.labels[int(rows[first[i]].argmax())]
        assert score == pytest.approx(float(rows[first[i]].max()))
    (found,) = tagger.entities(text)
    assert found == tagged.entities and len(found) > 0
    assert all(text[e.start : e.end] == e.text for e in found)
    tagger.settings = {"unit": "character"}
    (by_character,) = tagger.predict(text)
    assert by_character.words == list(text)
    (window,) = tagger.tokenizer.encode_text_windows([text], 24)
    rows = tagger.backend.run_one(window)["probability"]
    assert best_character_tags([text], [window], [rows], tagger.labels) == [by_character.tags]
    fine = window.token_ids.index(tagger.tokenizer.token_id("fine"))
    assert by_character.scores[4:8] == pytest.approx([float(rows[fine].max())] * 4)
    assert all(text[e.start : e.end] == e.text for e in by_character.entities)
    tagger.labels = ["NOUN", "VERB", "ADJ"]
    with pytest.raises(InputError, match=r"NOUN, VERB, ADJ mark no entities .* use tag"):
        tagger.entities(text)


def best_of(answerer, question, context, *sizes):
    """The answers by the outputs of each window of 24 tokens."""
    windows = answerer.tokenizer.encode_windows([question], [context], 24, *sizes)
    outputs = [answerer.backend.run_one(window) for window in windows]
    logits = ([row[name] for row in outputs] for name in ("start_logits", "end_logits"))
    return best_answers(windows, *logits, [context], count=1000)[0]


def test_an_answerer_follows_its_training(files):
    answerer = QuestionAnswerer(files["answerer"])
    context, question = "the film is not dull , a fine plot", "a film not dull ?"
    found = answerer.answer(question, context, count=1000)
    assert found == best_of(answerer, question, context, 6, 3)
    assert found[0].truncated  # questions are cut to 3 tokens
    assert sum(one.probability for one in found) == pytest.approx(1)
    assert "" not in [one.text for one in found]
    answerer.settings = {"null_answers": True}  # as where some questions have no answer
    found = answerer.answer(question, context, count=1000)
    assert "" in [one.text for one in found] and not found[0].truncated
    found = answerer.answer(question, context, null_answers=False, count=1000)
    assert "" not in [one.text for one in found]
    answerer.settings = {}  # as of files from before: questions of 64 tokens, all answered
    assert answerer.answer(question, context, count=1000) == found
    context = f"{context} , " * 4
    answers = []
    for stride, settings in ((6, {}), (2, {"stride": 2})):
        answerer.settings = settings
        answers.append(answerer.answer(question, context, count=1000))
        assert answers[-1] == best_of(answerer, question, context, stride)
    assert answers[0] != answers[1]


def test_a_tagger_reads_windows_as_in_training(files):
    tagger, found = TokenTagger(files["tagger"]), []
    words = ["the", "film", "is", "not", "dull"] * 9
    for stride, settings in ((6, {}), (6, {"stride": 9}), (1, {"stride": 1})):
        windows = tagger.tokenizer.encode_words([words], 24, stride)
        rows = best_rows(
            [words], windows, [tagger.backend.run_one(w)["probability"] for w in windows]
        )[0]
        tagger.settings = settings
        (tagged,) = tagger.predict([words])
        assert tagged.scores == [float(row.max()) for row in rows]
        found.append(tagged.scores)
    assert found[0] == found[1] != found[2]


def rewritten(path, to, model=None, **changes):
    """Write a file at `to` with another model or files, {name without .txt: text}."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name).decode() for name in archive.namelist()}
        model_size = min(member.header_offset for member in archive.infolist())
    settings = json.loads(members.pop(SETTINGS_FILE))
    members |= {f"{name}.txt": text for name, text in changes.items()}
    to.write_bytes(add_files(model or path.read_bytes()[:model_size], settings, members))
    return to


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("classifier", {"labels": "bad\ngood\nsilly"}, "holds 3 labels in labels.txt, but .* 2 c"),
        ("tagger", {"labels": "O"}, "holds 1 labels in labels.txt, but its model has 3 classes"),
        ("classifier", {"vocab": "[PAD]\n[UNK]\n[CLS]"}, r"its tokenizer .*lacks \[SEP\]"),
        ("classifier", {"model": b"junk" * 100}, "cannot be run by LiteRT"),
    ],
)
def test_labels_vocabularies_and_models_that_do_not_fit_are_refused(
    kind, changes, message, files, tmp_path
):
    path = rewritten(files[kind], tmp_path / "m.tflite", **changes)
    with pytest.raises(InputError, match=f"^{path}.*{message}"):
        load_runner(path)


def test_ids_outside_the_vocabulary_are_refused(files, tokenizer, tmp_path):
    longer = "\n".join([*tokenizer.vocabulary, *(f"more{i}" for i in range(1000))])
    path = rewritten(files["classifier"], tmp_path / "m.tflite", vocab=longer)
    classifier, text = TextClassifier(path), "a fine film"
    assert classifier.classify(text) == TextClassifier(files["classifier"]).classify(text)
    with pytest.raises(InputError, match=r"m\.tflite cannot be run by LiteRT"):
        classifier.classify("more999")


def test_threads_share_a_classifier_of_strings(tiny_config, tokenizer, tmp_path):
    config, path = dataclasses.replace(tiny_config, num_layers=1), tmp_path / "m.tflite"
    model = build_model(config, "classifier", 2)
    options = {"quantization": "float32", "max_length": 20, "tokenizer_in_graph": True}
    export_tflite(model, path, tokenizer, ["bad", "good"], Export(**options))
    classifier = StringClassifier(path)
    expected = [classifier.classify(text)[0] for text in STRINGS]
    assert [answer.truncated for answer in expected] == [False] * 5 + [True]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = pool.map(classifier.classify, STRINGS * 50)
        assert [answer for (answer,) in answers] == expected * 50
    assert classifier.classify("a film\ud800") == classifier.classify("a film\ufffd")
    with pytest.raises(InputError, match="pairs"):
        classifier.classify("a film", "fine")
    other = rewritten(path, tmp_path / "other.tflite", labels="bad")
    with pytest.raises(InputError, match=r"labels\.txt"):
        StringClassifier(other)


def test_a_string_is_one_text(files):
    classifier, scorer = TextClassifier(files["classifier"]), SentenceScorer(files["scorer"])
    assert classifier.classify("a film", "fine !") == classifier.classify(["a film"], ["fine !"])
    assert scorer.score("a fine film") == scorer.score(["a fine film"])
    assert EndingChooser(files["chooser"]).choose("the film is", "fine").place == 0
    tagger = TokenTagger(files["tagger"])
    (tagged,) = tagger.tag("a fine film")
    assert [word for word, _ in tagged] == ["a", "fine", "film"]
    assert [tagged] == tagger.tag([["a", "fine", "film"]]) == tagger.tag(["a fine film"])


def test_odd_texts_give_an_answer(files):
    classifier, scorer = TextClassifier(files["classifier"]), SentenceScorer(files["scorer"])
    odd = ["", " \n\t", "\ud800", "x" * 100_000, "a fine film " * 10_000]
    found = classifier.classify(odd)
    assert [len(one.probabilities) for one in found] == [2] * 5
    assert [one.truncated for one in found] == [False, False, False, False, True]
    assert found[0] == found[1]
    assert classifier.classify([]) == scorer.score([]) == []
    assert len(scorer.score(odd, odd[::-1])) == 5
    tagger = TokenTagger(files["tagger"])
    assert tagger.tag([]) == []
    assert [len(tagged) for tagged in tagger.tag([[], "", ["", "film", " "], "\ud800 a"])] == [
        *(0, 0, 3, 2)
    ]
    assert len(tagger.tag("film " * 1000)[0]) == 1000
    answerer = QuestionAnswerer(files["answerer"])
    for question, context in (("", ""), ("film ?", ""), ("\ud800", " ")):
        assert [answer.text for answer in answerer.answer(question, context)] == [""]
    (answer,) = answerer.answer("", "a fine film")
    assert answer.text and answer.text in "a fine film"
    (answer,) = answerer.answer("which film " * 1000, "a fine film , " * 1000)
    assert answer.text and answer.text in "a fine film , " * 30


def test_outputs_by_token_leave_out_padding(files):
    answerer = QuestionAnswerer(files["answerer"])
    (encoding,) = answerer.tokenizer.encode(["a fine film"])
    expected = answerer.backend.run_one(encoding)
    # As of a file of one fixed length.
    answerer.backend._signatures = {24: answerer.backend._signatures[None]}
    for name, logits in answerer.backend.run_one(encoding).items():
        assert logits.shape == (len(encoding.token_ids),)
        np.testing.assert_allclose(logits, expected[name], atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "call", "message"),
    [
        ("classifier", lambda c: c.classify(["a", None]), r"texts\[1\]"),
        ("classifier", lambda c: c.classify(["a"], ["b", "c"]), "pairs holds 2"),
        ("chooser", lambda c: c.choose("a", []), "lists"),
        ("chooser", lambda c: c.choose_all(["a"], [["b"], ["c"]]), "2 lists"),
        ("tagger", lambda t: t.tag([["a", None]]), r"sentences\[0\]\[1\]"),
        ("answerer", lambda a: a.answer("a", None), "context"),
        ("answerer", lambda a: a.answer("a", "b", count=0), "count=0"),
    ],
)
def test_inputs_that_are_no_texts_are_refused(kind, call, message, files):
    with pytest.raises(InputError, match=message):
        call(load_runner(files[kind]))


def test_four_threads_give_what_one_gives(files):
    classifier = TextClassifier(files["classifier"])
    single = [classifier.classify(text) for text in TEXTS]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(classifier.classify, TEXTS * 200)) == single * 200


WITHOUT_TENSORFLOW = """
import json, sys
allowed, files = map(json.loads, sys.argv[1:])

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed:
            raise ModuleNotFoundError(f"{name} is not there")

sys.meta_path.insert(0, Finder())
from distill.runtime import load_runner
from tfnlp.text import load_tokenizer  # what the package exports is there too

load_runner(files["classifier"]).classify("a fine film")
load_runner(files["scorer"]).score("a fine film")
load_runner(files["tagger"]).entities("a fine film")
load_runner(files["answerer"]).answer("film ?", "a fine film")
load_runner(files["chooser"]).choose("a", ["fine film", "dull film"])
print(json.dumps("tensorflow" not in sys.modules))
"""


def test_files_run_with_the_requirements_of_the_runtime_alone(files):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = read_requirements("requirements.txt")
    assert {*requirements} < {*project["dependencies"]}
    allowed = installed_modules(requirements)
    assert not {"tensorflow", "keras", "scipy", "sklearn", "sentencepiece"} & {*allowed}
    arguments = [*allowed, *sys.stdlib_module_names, *OURS], files
    arguments = (json.dumps(argument, default=str) for argument in arguments)
    assert run(WITHOUT_TENSORFLOW, *arguments)
