"""Recipes as a user runs them, and what they start from."""

import json
import subprocess

import keras
import pytest

from tests.grammar_corpus import make_reviews, write_reviews
from tests.recipes.processes import Shell, command
from tfnlp.checkpoints import save_model
from tfnlp.models import BertConfig, Gpt2Config, build_model
from tfnlp.text import train_tokenizer, train_wordpiece

SMALL = ["--num_layers=2", "--hidden_dim=32", "--num_heads=2", "--vocabulary_size=300"]


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """Runs a recipe: `run(recipe, *flags, status=0, fresh=False)`; `fresh` in a new Python."""
    shell, folder = Shell(), tmp_path_factory.mktemp("shell")

    def run(recipe, *flags, status=0, fresh=False):
        if fresh:
            done = subprocess.run(
                command(recipe, *flags), check=False, capture_output=True, text=True, cwd="/"
            )
        else:
            done = shell.run(recipe, flags, folder)
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr and "retracing" not in done.stderr
        return done

    yield run
    shell.close()


@pytest.fixture
def float_file(run, tmp_path):
    """Exports a folder in float32: `float_file(folder)` is the path of the file."""

    def export(folder):
        flags = [f"--model_dir={folder}", f"--output_dir={tmp_path}", "--quantization=float32"]
        run("export_tflite", *flags)
        return tmp_path / "model.tflite"

    return export


@pytest.fixture(scope="session")
def refused(run):
    """Runs a recipe that refuses its flags: `refused(recipe, *flags)` is its sentence."""

    def refused(recipe, *flags):
        line = run(recipe, *flags, status=2).stderr.splitlines()[-1]
        assert line.startswith("Error: ")
        return line

    return refused


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """The flags of files of reviews."""
    folder = tmp_path_factory.mktemp("corpus")
    write_reviews(folder, train=320, dev=64, test=64)
    return [f"--{name}={folder / name}.tsv" for name in ("train", "dev", "test")]


@pytest.fixture(scope="session")
def teacher(corpus, run, tmp_path_factory):
    """The run folder of a small classifier, and its flags."""
    folder = tmp_path_factory.mktemp("teacher") / "run"
    flags = [*corpus, *SMALL, "--epochs=2", "--learning_rate=1e-3", "--checkpoint_steps=3"]
    run("finetune_classifier", *flags, f"--output_dir={folder}", fresh=True)
    return folder, flags


@pytest.fixture(scope="session")
def language_model(tmp_path_factory):
    """The folder of a random GPT-2."""
    path = tmp_path_factory.mktemp("model")
    texts = [text for text, _ in make_reviews(100)]
    tokenizer = train_tokenizer(texts, "bpe", 300, "gpt2")[0]
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 64}
    config = Gpt2Config(**sizes, vocabulary_size=tokenizer.vocabulary_size, max_length=40)
    keras.utils.set_random_seed(0)  # others may write line ends
    save_model(build_model(config, "causal_lm"), path, tokenizer=tokenizer)
    # Where `transformers` finds what ends a text.
    config = json.loads((path / "config.json").read_text())
    assert config["eos_token_id"] == tokenizer.token_id("<|endoftext|>") < 300
    return path


@pytest.fixture(scope="session")
def student(corpus, teacher, run, tmp_path_factory):
    """The run folder of a student of the classifier, and its flags."""
    folder = tmp_path_factory.mktemp("student")
    flags = [f"--teacher_dir={teacher[0] / 'best'}", *corpus, "--num_layers=1", "--epochs=1"]
    flags += ["--hidden_dim=16", "--hidden_state_weight=0.1", "--attention_weight=0.01"]
    flags += [f"--cache_dir={folder / 'cache'}"]
    run("distill_classifier", *flags, f"--output_dir={folder / 'run'}")
    return folder / "run", flags


@pytest.fixture(scope="session")
def exported(student, run, tmp_path_factory):
    """The folder of the student's .tflite file, with golden outputs, and what its export said."""
    folder = tmp_path_factory.mktemp("exported")
    (folder / "golden.txt").write_text("the film is superb .\ndull\n")
    flags = [f"--model_dir={student[0] / 'best'}", f"--output_dir={folder}"]
    return folder, run("export_tflite", *flags, f"--golden={folder / 'golden.txt'}").stderr


@pytest.fixture(scope="session")
def reviews_teacher(tmp_path_factory):
    """A folder with files of reviews, and `teacher`, the folder of a random classifier."""
    place = tmp_path_factory.mktemp("teacher")
    write_reviews(place, train=64, dev=16, test=16)
    tokenizer = train_wordpiece([text for text, _ in make_reviews(300)], 500)
    sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 16, "intermediate_dim": 32}
    model = build_model(BertConfig(tokenizer.vocabulary_size, **sizes), "classifier", 2)
    save_model(model, place / "teacher", ["negative", "positive"], tokenizer, {"max_length": 48})
    return place


@pytest.fixture
def write_sweep(tmp_path):
    """Writes a sweep's file over a train and a dev file, and gives its path."""
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_text("sentence\tlabel\na\t0\n")

    def write(text, name="sweep.yaml"):
        path = tmp_path / name
        path.write_text(text.replace("TMP", str(tmp_path)), encoding="utf-8")
        return path

    return write
