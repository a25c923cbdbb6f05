"""What a device meets: damaged files, odd texts, threads, and no TensorFlow."""

import importlib.metadata
import json
import pathlib
import shutil
import subprocess
import sys
import tomllib
import zipfile

import numpy as np
import pytest

from distill.runtime import (
    EndingChooser,
    QuestionAnswerer,
    SentenceScorer,
    TextClassifier,
    TextGenerator,
    TextRunner,
    TokenTagger,
    load_runner,
)
from distill.runtime.associated_files import CHECKSUM, SETTINGS_FILE, add_files
from tfnlp.text.answers import best_answers
from tfnlp.text.character_tags import best_character_tags
from tfnlp.text.tags import best_rows
from tfnlp.utils.errors import InputError

ROOT = pathlib.Path(__file__).parents[3]
OURS = ("distill", "recipes", "tfnlp")  # the packages of the distribution
TEXTS = ["a fine film", "", "   ", "정말 지루하다", "the film is not dull , " * 5]


def run(code, *arguments, folder=ROOT):
    """A process of its own, as a crash would end that of the tests."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert (done.returncode, done.stderr[-2000:]) == (0, "")  # no notice of LiteRT either
    return json.loads(done.stdout.splitlines()[-1])


FLIP_BYTES = """
import json, pathlib, sys
from distill.runtime import TextClassifier
from tfnlp.utils.errors import InputError

path, places = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
content = path.read_bytes()
expected = TextClassifier(path).classify("a fine film")
damaged = path.with_name("damaged.tflite")
found = {"refused": [], "right": [], "wrong": []}
for place in places:
    changed = bytearray(content)
    changed[place] ^= 0xFF
    damaged.write_bytes(changed)
    try:
        answer = TextClassifier(damaged).classify("a fine film")
        found["right" if answer == expected else "wrong"].append(place)
    except InputError as e:
        assert str(damaged) in str(e) and "\\n" not in str(e)
        found["refused"].append(place)
print(json.dumps(found))
"""


def test_a_changed_byte_is_told_or_does_not_matter(files):
    path = files["classifier"]
    with zipfile.ZipFile(path) as archive:
        model_size = min(member.header_offset for member in archive.infolist())
        ends = archive.start_dir
    size = path.stat().st_size
    model = [*range(0, 64, 4), *range(64, model_size, model_size // 40), model_size - 1]
    places = [*model, *range(model_size, ends, 9), *range(ends, size, 2)]
    found = run(FLIP_BYTES, path, json.dumps(places))
    assert found["wrong"] == []
    assert set(model) <= set(found["refused"])
    assert all(place > model_size for place in found["right"])  # such as the dates of the zip
    assert len(found["refused"]) > 0.7 * len(places)


def test_files_that_are_not_whole_are_told(files, tmp_path):
    content, path = files["classifier"].read_bytes(), tmp_path / "m.tflite"
    for part in (b"", b"junk" * 100, content[:-1], content[:-200], content[1:], content[:5000]):
        path.write_bytes(part)
        with pytest.raises(InputError, match=r"m\.tflite is (no \.tflite with|damaged)"):
            TextClassifier(path)
    with pytest.raises(InputError, match=f"^{tmp_path} is a folder; give the .tflite file in it"):
        TextClassifier(tmp_path)
    with pytest.raises(InputError, match=r"^path=None is no path; give"):
        TextClassifier(None)
    with pytest.raises(InputError, match="does not exist"):
        TextClassifier(tmp_path / "none.tflite")
    with pytest.raises(InputError, match=r"^num_threads=0 must be at least 1"):
        TextClassifier(files["classifier"], num_threads=0)
    with pytest.raises(InputError, match=r"^num_threads='2' must be a whole number"):
        TextClassifier(files["classifier"], num_threads="2")


def test_files_of_other_programs_and_kinds_are_told(files, tmp_path):
    content, path = files["classifier"].read_bytes(), tmp_path / "m.tflite"
    with zipfile.ZipFile(files["classifier"]) as archive:
        model = content[: min(member.header_offset for member in archive.infolist())]
    path.write_bytes(model)
    with pytest.raises(InputError, match="inside: it is of another program"):
        load_runner(path)
    with zipfile.ZipFile(path, "a") as archive:  # as MediaPipe's own files have it
        archive.writestr("vocab.txt", "[PAD]")
    with pytest.raises(InputError, match="inside: it is of another program"):
        load_runner(path)
    settings = {"model_max_length": 9, "kind": "parser"}
    path.write_bytes(add_files(model, settings, {"vocab.txt": ""}))
    with pytest.raises(InputError, match=r"of the kind 'parser', .* known are classifier, tagger"):
        TextRunner(path)
    for kind, runner, said in (
        ("classifier", QuestionAnswerer, "is a classifier, not an answerer; .*TextClassifier"),
        ("answerer", TokenTagger, "is an answerer, not a tagger; use .*runtime.QuestionAnswerer"),
        ("classifier", EndingChooser, "is a classifier, not a chooser"),
        ("classifier", TextGenerator, "is a classifier, not a generator; use"),
    ):
        with pytest.raises(InputError, match=said):
            runner(files[kind])


def test_a_file_says_what_runs_it(files):
    runners = {kind: load_runner(path) for kind, path in files.items()}
    message = "tag is of the kind tagger, and this model is of the kind classifier, which has clas"
    with pytest.raises(InputError, match=message):
        runners["classifier"].tag(["a fine film"])
    with pytest.raises(InputError, match=r"choose_all is of the kind chooser, .* kind scorer"):
        runners["scorer"].choose_all(["a"], [["fine", "film"]])
    assert not hasattr(runners["tagger"], "classify") and hasattr(runners["tagger"], "entities")
    with pytest.raises(AttributeError, match="'TokenTagger' object has no attribute 'taag'"):
        runners["tagger"].taag(["a fine film"])
    assert {kind: type(runner).__name__ for kind, runner in runners.items()} == {
        "classifier": "TextClassifier",
        "tagger": "TokenTagger",
        "answerer": "QuestionAnswerer",
        "scorer": "SentenceScorer",
        "chooser": "EndingChooser",
    }
    # Choosers were exported as scorers at first.
    prompt, endings = "the film is", ["dull", "fine", "not a plot"]
    choice = runners["chooser"].choose(prompt, endings)
    scores = SentenceScorer(files["chooser"]).score([prompt] * 3, endings)
    assert choice.place == int(np.argmax(scores)) and choice.ending == endings[choice.place]
    chances = np.exp(scores) / np.sum(np.exp(scores))
    np.testing.assert_allclose(choice.probabilities, chances, rtol=1e-5)
    assert EndingChooser(files["scorer"]).choose(prompt, ["dull"]).probabilities == [1.0]
    prompts = ["the film " * 20, prompt]
    assert [c.truncated for c in runners["chooser"].choose_all(prompts, [endings] * 2)] == [
        True,
        False,
    ]


def test_words_and_their_entities_have_places_in_the_text(files):
    tagger = TokenTagger(files["tagger"])
    text = " (a fine film.)  정말 좋다!"
    (tagged,) = tagger.read(text)
    assert tagged.text == text
    expected = ["(", "a", "fine", "film", ".", ")", "정말", "좋다", "!"]
    assert tagged.words == [word for word, _ in tagger.tag(text)[0]] == expected
    assert [text[start:end] for start, end in tagged.spans] == expected
    (by_words,) = tagger.read([expected])
    assert by_words.text == " ".join(expected) and by_words.words == expected
    assert (by_words.tags, by_words.scores) == (tagged.tags, tagged.scores)
    assert tagger.read(iter([text])) == [tagged]
    (window,) = tagger.tokenizer.encode_words([expected], 24)
    rows = tagger.outputs(window)["probability"]
    first = {word: place for place, word in reversed([*enumerate(window.words)])}
    for i, (tag, score) in enumerate(zip(tagged.tags, tagged.scores, strict=True)):
        assert tag == tagger.labels[int(rows[first[i]].argmax())]
        assert score == pytest.approx(float(rows[first[i]].max()))
    (found,) = tagger.entities(text)
    assert found == tagged.entities and len(found) > 0
    assert all(text[e.start : e.end] == e.text for e in found)
    tagger.settings = {"unit": "character"}
    (by_character,) = tagger.read(text)
    assert by_character.words == list(text)
    (window,) = tagger.tokenizer.encode_text_windows([text], 24)
    rows = tagger.outputs(window)["probability"]
    assert best_character_tags([text], [window], [rows], tagger.labels) == [by_character.tags]
    fine = window.token_ids.index(tagger.tokenizer.token_id("fine"))
    assert by_character.scores[4:8] == pytest.approx([float(rows[fine].max())] * 4)
    assert all(text[e.start : e.end] == e.text for e in by_character.entities)
    tagger.labels = ["NOUN", "VERB", "ADJ"]
    with pytest.raises(InputError, match=r"NOUN, VERB, ADJ are of no entities .* use tag"):
        tagger.entities(text)


def test_an_answerer_follows_its_training(files):
    answerer = QuestionAnswerer(files["answerer"])
    context, question = "the film is not dull , a fine plot", "a film not dull ?"
    windows = answerer.tokenizer.encode_windows([question], [context], 24, 6, 3)
    outputs = [answerer.outputs(window) for window in windows]
    logits = ([row[name] for row in outputs] for name in ("start_logits", "end_logits"))
    (expected,) = best_answers(windows, *logits, [context], count=1000)
    found = answerer.answer(question, context, count=1000)
    assert found == expected and found[0].truncated  # questions are cut to 3 tokens
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
        windows = answerer.tokenizer.encode_windows([question], [context], 24, stride)
        outputs = [answerer.outputs(window) for window in windows]
        logits = ([row[name] for row in outputs] for name in ("start_logits", "end_logits"))
        answerer.settings = settings
        answers.append(answerer.answer(question, context, count=1000))
        assert answers[-1] == best_answers(windows, *logits, [context], count=1000)[0]
    assert answers[0] != answers[1]


def test_a_tagger_reads_windows_as_in_training(files):
    tagger, found = TokenTagger(files["tagger"]), []
    words = ["the", "film", "is", "not", "dull"] * 9
    for stride, settings in ((6, {}), (6, {"stride": 9}), (1, {"stride": 1})):
        windows = tagger.tokenizer.encode_words([words], 24, stride)
        rows = best_rows([words], windows, [tagger.outputs(w)["probability"] for w in windows])[0]
        tagger.settings = settings
        (tagged,) = tagger.read([words])
        assert tagged.scores == [float(row.max()) for row in rows]
        found.append(tagged.scores)
    assert found[0] == found[1] != found[2]


def rewritten(path, to, **changes):
    """The file with other associated files, {name without .txt: text}, at `to`."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name).decode() for name in archive.namelist()}
        model_size = min(member.header_offset for member in archive.infolist())
    settings = json.loads(members.pop(SETTINGS_FILE))
    members |= {f"{name}.txt": text for name, text in changes.items()}
    to.write_bytes(add_files(path.read_bytes()[:model_size], settings, members))
    return to


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("classifier", {"labels": "bad\ngood\nsilly"}, "holds 3 labels in labels.txt, but .* 2 c"),
        ("tagger", {"labels": "O"}, "holds 1 labels in labels.txt, but its model has 3 classes"),
        ("classifier", {"vocab": "[PAD]\n[UNK]\n[CLS]"}, r"its tokenizer .*lacks \[SEP\]"),
    ],
)
def test_labels_and_vocabularies_of_another_are_told(kind, changes, message, files, tmp_path):
    path = rewritten(files[kind], tmp_path / "m.tflite", **changes)
    runner = {"classifier": TextClassifier, "tagger": TokenTagger}[kind]
    with pytest.raises(InputError, match=f"^{path}.*{message}"):
        runner(path)


def test_ids_that_the_model_has_not_are_told(files, tokenizer, tmp_path):
    longer = "\n".join([*tokenizer.vocabulary, *(f"more{i}" for i in range(1000))])
    path = rewritten(files["classifier"], tmp_path / "m.tflite", vocab=longer)
    classifier = TextClassifier(path)
    assert classifier.classify("a fine film") == TextClassifier(files["classifier"]).classify(
        "a fine film"
    )
    with pytest.raises(InputError, match=r"m\.tflite cannot be run by LiteRT"):
        classifier.classify("more999")


def test_files_from_before_checksums_run(files, tmp_path):
    path, old = files["classifier"], tmp_path / "m.tflite"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
        model_size = min(member.header_offset for member in archive.infolist())
    settings = json.loads(members[SETTINGS_FILE])
    del settings[CHECKSUM]
    members[SETTINGS_FILE] = json.dumps(settings)

    def write(model):
        old.write_bytes(model)
        with zipfile.ZipFile(old, "a") as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    write(path.read_bytes()[:model_size])
    assert TextClassifier(old).classify(TEXTS) == TextClassifier(path).classify(TEXTS)
    write(b"junk" * 100)
    with pytest.raises(InputError, match=r"m\.tflite cannot be run by LiteRT"):
        TextClassifier(old)


def test_a_string_is_one_text(files):
    classifier, scorer = TextClassifier(files["classifier"]), SentenceScorer(files["scorer"])
    assert classifier.classify("a fine film") == classifier.classify(["a fine film"])
    assert classifier.classify("a film", "fine !") == classifier.classify(["a film"], ["fine !"])
    assert scorer.score("a fine film") == scorer.score(["a fine film"])
    assert len(scorer.score("a fine film", "not dull")) == 1
    assert scorer.choose("the film is", "fine") == 0
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


def test_padding_is_left_out_of_what_is_given_by_token(files):
    answerer = QuestionAnswerer(files["answerer"])
    (encoding,) = answerer.tokenizer.encode(["a fine film"])
    expected = answerer.outputs(encoding)
    answerer._runners = {24: answerer._runners[None]}  # as of a file of one fixed length
    for name, logits in answerer.outputs(encoding).items():
        assert logits.shape == (len(encoding.token_ids),)
        np.testing.assert_allclose(logits, expected[name], atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "call", "message"),
    [
        ("classifier", lambda c: c.classify(None), "texts"),
        ("classifier", lambda c: c.classify(["a", None]), r"texts\[1\] is None"),
        ("classifier", lambda c: c.classify(["a"], ["b", "c"]), "pairs holds 2 texts and texts 1"),
        ("scorer", lambda s: s.score([3]), r"texts\[0\] is 3"),
        ("scorer", lambda s: s.choose("a", []), "^endings is empty"),
        ("scorer", lambda s: s.choose(None, ["a"]), "prompt"),
        ("chooser", lambda c: c.choose("a", []), r"^endings\[0\] is empty"),
        ("chooser", lambda c: c.choose_all(["a"], [["b"], ["c"]]), "^endings holds 2 lists and p"),
        ("tagger", lambda t: t.tag(None), "sentences"),
        ("tagger", lambda t: t.tag([["a", None]]), r"sentences\[0\]\[1\] is None"),
        ("answerer", lambda a: a.answer(None, "a"), "question"),
        ("answerer", lambda a: a.answer("a", None), "context"),
        ("answerer", lambda a: a.answer("a", "b", count=0), "^count=0 must be at least 1"),
        ("answerer", lambda a: a.answer("a", "b", count="1"), "^count='1' must be a whole number"),
    ],
)
def test_what_is_no_text_is_told(kind, call, message, files):
    runner = {
        "classifier": TextClassifier,
        "scorer": SentenceScorer,
        "tagger": TokenTagger,
        "answerer": QuestionAnswerer,
        "chooser": EndingChooser,
    }[kind]
    with pytest.raises(InputError, match=message):
        call(runner(files[kind]))


FOUR_THREADS = """
import concurrent.futures, json, sys
from distill.runtime import TextClassifier

classifier, texts = TextClassifier(sys.argv[1]), json.loads(sys.argv[2])
single = [classifier.classify(text) for text in texts]
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    found = list(pool.map(classifier.classify, texts * 200))
print(json.dumps([found == single * 200, len(found)]))
"""


def test_four_threads_give_what_one_gives(files):
    assert run(FOUR_THREADS, files["classifier"], json.dumps(TEXTS)) == [True, 1000]


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
print(json.dumps(sys.modules["distill.runtime"].__file__))
"""


def test_the_distribution_runs_files_with_the_requirements_of_the_runtime(files, tmp_path):
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    modules = [p.relative_to(ROOT) for top in OURS for p in (ROOT / top).rglob("*.py*")]
    modules = [module for module in modules if module.suffix in (".py", ".pyi")]
    for module in modules:
        (tmp_path / module.parent).mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / module, tmp_path / module)
    installed = tmp_path / "installed"
    command = "-m pip install --quiet --no-index --no-deps --no-build-isolation --target"
    subprocess.run([sys.executable, *command.split(), installed, tmp_path], check=True)
    assert {
        p.relative_to(installed) for p in installed.rglob("*.py*") if "__pycache__" not in p.parts
    } == {*modules}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "runtime" / "requirements.txt").read_text().splitlines()
    requirements = [line for line in lines if not line.startswith("#")]
    assert {*requirements} < {*project["dependencies"]}
    # The packages that pip installs, by the names that are imported.
    names, wanted = set(), [name_of(line) for line in requirements]
    while wanted:
        if (name := wanted.pop()) not in names:
            names.add(name)
            required = importlib.metadata.requires(name) or []
            wanted += [name_of(line) for line in required if ";" not in line]
    allowed = [
        top
        for top, owners in importlib.metadata.packages_distributions().items()
        if names & {name_of(owner) for owner in owners}
    ]
    assert not {"tensorflow", "keras", "scipy", "sklearn", "sentencepiece"} & {*allowed}
    arguments = [*allowed, *sys.stdlib_module_names, *OURS], files
    arguments = (json.dumps(argument, default=str) for argument in arguments)
    runtime = run(WITHOUT_TENSORFLOW, *arguments, folder=installed)
    assert runtime == str(installed / "distill" / "runtime" / "__init__.py")


def name_of(requirement):
    """Return the distribution's name in a requirement such as "numpy>=1.26"."""
    for end in " <>=!~[;(":
        requirement = requirement.partition(end)[0]
    return requirement.lower().replace("_", "-").replace(".", "-")
