"""What a device meets: damaged files, odd texts, threads, and no TensorFlow."""

import importlib.metadata
import json
import pathlib
import subprocess
import sys
import tomllib
import zipfile

import pytest

from distill.device.associated_files import CHECKSUM, SETTINGS_FILE, add_files
from distill.device.tflite import export_tflite
from distill.runtime import QuestionAnswerer, SentenceScorer, TextClassifier, TokenTagger
from tfnlp.errors import InputError
from tfnlp.models import DistilBertConfig, build_model

ROOT = pathlib.Path(__file__).parents[3]
TEXTS = ["a fine film", "", "   ", "정말 지루하다", "the film is not dull , " * 5]


@pytest.fixture(scope="module")
def files(tokenizer, tmp_path_factory):
    """A small model's file for each kind, {kind: path}."""
    folder = tmp_path_factory.mktemp("files")
    config = DistilBertConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=16,
        max_length=24,
        initializer_range=0.3,
    )
    paths = {}
    for kind, head, classes, labels in (
        ("classifier", "classifier", 2, ["bad", "good"]),
        ("scorer", "classifier", 1, None),
        ("tagger", "tagger", 3, ["O", "B-x", "I-x"]),
        ("answerer", "answerer", None, None),
    ):
        paths[kind] = folder / f"{kind}.tflite"
        export_tflite(build_model(config, head, classes), paths[kind], tokenizer, labels)
    return paths


def run(code, *arguments):
    """A process of its own, as a crash would end that of the tests."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


FLIP_BYTES = """
import json, pathlib, sys
from distill.runtime import TextClassifier
from tfnlp.errors import InputError

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
    with pytest.raises(InputError, match=r"is no \.tflite with a tokenizer inside"):
        TextClassifier(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        TextClassifier(tmp_path / "none.tflite")
    with pytest.raises(InputError, match=r"^num_threads=0 must be at least 1"):
        TextClassifier(files["classifier"], num_threads=0)


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
    tagger = TokenTagger(files["tagger"])
    (tagged,) = tagger.tag("a fine film")
    assert [word for word, _ in tagged] == ["a", "fine", "film"]
    assert [tagged] == tagger.tag([["a", "fine", "film"]]) == tagger.tag(["a fine film"])


def test_odd_texts_give_an_answer(files):
    classifier, scorer = TextClassifier(files["classifier"]), SentenceScorer(files["scorer"])
    odd = ["", " \n\t", "\ud800", "x" * 100_000, "a fine film " * 10_000]
    found = classifier.classify(odd)
    assert [len(one.probabilities) for one in found] == [2] * 5
    assert [one.cut for one in found] == [False, False, False, False, True]
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


@pytest.mark.parametrize(
    ("kind", "call", "message"),
    [
        ("classifier", lambda c: c.classify(None), "texts"),
        ("classifier", lambda c: c.classify(["a", None]), r"texts\[1\] is None"),
        ("classifier", lambda c: c.classify(["a"], ["b", "c"]), "pairs holds 2 texts and texts 1"),
        ("scorer", lambda s: s.score([3]), r"texts\[0\] is 3"),
        ("scorer", lambda s: s.choose("a", []), "^endings is empty"),
        ("scorer", lambda s: s.choose(None, ["a"]), "prompt"),
        ("tagger", lambda t: t.tag(None), "sentences"),
        ("tagger", lambda t: t.tag([["a", None]]), r"sentences\[0\]\[1\] is None"),
        ("answerer", lambda a: a.answer(None, "a"), "question"),
        ("answerer", lambda a: a.answer("a", None), "context"),
        ("answerer", lambda a: a.answer("a", "b", count=0), "^count=0 must be at least 1"),
    ],
)
def test_what_is_no_text_is_told(kind, call, message, files):
    runner = {
        "classifier": TextClassifier,
        "scorer": SentenceScorer,
        "tagger": TokenTagger,
        "answerer": QuestionAnswerer,
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


ONLY_ITS_OWN = """
import json, sys
allowed, modules, files = map(json.loads, sys.argv[1:])

class Finder:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        own = top in ("distill", "tfnlp")
        if (own and name not in modules) or not (own or top in allowed):
            raise ModuleNotFoundError(f"{name} is not there")

sys.meta_path.insert(0, Finder())
from distill.runtime import QuestionAnswerer, SentenceScorer, TextClassifier, TokenTagger
from tfnlp.text import load_tokenizer  # what the package exports is there too

TextClassifier(files["classifier"]).classify("a fine film")
SentenceScorer(files["scorer"]).score("a fine film")
TokenTagger(files["tagger"]).tag("a fine film")
QuestionAnswerer(files["answerer"]).answer("film ?", "a fine film")
print(json.dumps(sorted(m for m in sys.modules if m.split(".")[0] in ("distill", "tfnlp"))))
"""


def test_the_runtimes_own_distribution_holds_all_that_it_needs(files):
    project = tomllib.loads((ROOT / "runtime" / "pyproject.toml").read_text())
    setuptools = project["tool"]["setuptools"]
    modules = {"distill", "distill.device", "tfnlp"}
    modules |= {*setuptools["py-modules"], *setuptools["packages"]}
    for package in setuptools["packages"]:
        found = (ROOT / package.replace(".", "/")).glob("[!_]*.py")
        modules |= {f"{package}.{path.stem}" for path in found}
    # What pip installs with it, by the names that are imported.
    names, wanted = set(), [name_of(line) for line in project["project"]["dependencies"]]
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
    arguments = [*allowed, *sys.stdlib_module_names], sorted(modules), files
    loaded = run(ONLY_ITS_OWN, *(json.dumps(a, default=str) for a in arguments))
    assert set(loaded) == modules


def name_of(requirement):
    """The distribution's name in a requirement such as "numpy>=1.26"."""
    for end in " <>=!~[;(":
        requirement = requirement.partition(end)[0]
    return requirement.lower().replace("_", "-").replace(".", "-")
