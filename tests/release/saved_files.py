"""Files that a version saved, and the numbers that they give: written, and read, by kind."""

import pathlib
import shutil
import subprocess
import sys

import keras
import numpy as np

from distill.export import Export, export_tflite
from distill.learning.teacher_outputs import compute_teacher_outputs
from distill.runtime import TextClassifier
from tests.grammar_corpus import LABELS, make_reviews, write_reviews
from tests.kills import progress_of
from tfnlp.checkpoints import load_model, save_model
from tfnlp.configs import config_by_name
from tfnlp.corpora import CorpusSettings, prepare_corpus
from tfnlp.models import build_model
from tfnlp.objectives import open_corpus
from tfnlp.text import LengthBatches, load_tokenizer
from tfnlp.text.tokenizers.tokenizer_loading import kind_for, train_tokenizer
from tfnlp.training import RunFolder, predict

ROOT = pathlib.Path(__file__).parents[2]
FAMILIES = (
    *("bert", "roberta", "distilbert", "albert", "electra", "deberta", "deberta_v2"),
    *("deberta_v3", "xlnet", "transformer_xl", "gpt", "gpt2", "lstm", "textcnn", "bag", "elmo"),
)
ARCHIVES = ("deberta", "transformer_xl", "lstm")
TEXTS = ["the film is superb .", "지루한 영화"]
SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 32}
FURTHER_SIZES = {
    "albert": {"embedding_dim": 4},
    "electra": {"embedding_dim": 4},
    "elmo": {"intermediate_dim": 16, "filters": (4, 4), "character_dim": 4},
}
RECIPE = ROOT / "recipes" / "finetune_classifier.py"
RUN = ["--num_layers=1", "--num_heads=2", "--hidden_dim=8", "--vocabulary_size=150", "--epochs=2"]
RUN += ["--batch_size=8", "--max_length=32", "--learning_rate=1e-2", "--checkpoint_steps=2"]
# A training of 12 steps an epoch that dies in the second.
DYING = """
import runpy, sys
from tests.kills import killed_after
sys.argv = sys.argv[1:]
with killed_after(20):
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


def small_model(family):
    """Return a random classifier and its tokenizer."""
    config = config_by_name(family)
    tokenizer = train_tokenizer(
        [text for text, _ in make_reviews(60)],
        kind := kind_for(config.model_type),
        150 if kind == "wordpiece" else 300,
        None if kind == "wordpiece" else config.model_type,
    )[0]
    sizes = {"hidden_dim": 8} if family in ("textcnn", "bag") else dict(SIZES)
    if not config.attends:
        sizes = {name: sizes[name] for name in sizes.keys() - {"num_heads", "intermediate_dim"}}
    if getattr(config, "max_length", None):
        sizes["max_length"] = 32
    sizes |= {"vocabulary_size": tokenizer.vocabulary_size, "pad_token_id": tokenizer.pad_token_id}
    sizes |= FURTHER_SIZES.get(family, {})
    model = build_model(config_by_name(family, **sizes), "classifier", 2)
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:  # larger than fresh ones, so that all show
        variable.assign(rng.normal(0, 0.3, variable.shape))
    return model, tokenizer


def write_models(folder):
    for family in FAMILIES:
        model, tokenizer = small_model(family)
        save_model(model, folder / family, list(LABELS), tokenizer, {"max_length": 32})


def read_model(folder, _):
    model, tokenizer = load_model(folder, "classifier"), load_tokenizer(folder)
    ids = [encoding.token_ids for encoding in tokenizer.encode(TEXTS)]
    return {"token_ids": ids, "logits": predict(model, tokenizer, TEXTS)["logits"].tolist()}


def write_archives(folder):
    folder.mkdir(parents=True)
    for family in ARCHIVES:
        small_model(family)[0].save(folder / f"{family}.keras")


def read_archive(path, _):
    model = keras.saving.load_model(path)
    ids = np.array([[5, 6, 7, 8], [9, 10, 11, 12]], "int32")
    inputs = {"token_ids": ids, "segment_ids": ids * 0, "padding_mask": ids * 0 + 1}
    inputs = {x.name: inputs[x.name] for x in model.inputs}
    return {"logits": keras.ops.convert_to_numpy(model(inputs)["logits"]).tolist()}


def write_run(folder):
    """Write a data folder, and a run on it that died in the second epoch."""
    write_reviews(folder / "data", train=96, dev=16, test=16)
    command = [sys.executable, "-c", DYING, str(RECIPE), *RUN, *splits(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    if "Killed" not in done.stderr or not (folder / "run" / "state.safetensors").exists():
        raise RuntimeError(done.stderr)
    shutil.rmtree(folder / "run" / "events")


def splits(folder):
    flags = [f"--{name}={folder / 'data' / name}.tsv" for name in ("train", "dev")]
    return [*flags, f"--output_dir={folder / 'run'}"]


def read_run(folder, place):
    """Resume a copy of the run; return what it resumed from, and its losses."""
    folder = shutil.copytree(folder, place / "resumed")
    progress = progress_of(RunFolder(folder / "run", {}, writes=False, overwrite=True))
    command = [sys.executable, str(RECIPE), *RUN, *splits(folder)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    metrics = RunFolder(folder / "run", {}, writes=False, overwrite=True).metrics()
    losses = [{k: v for k, v in m.items() if k.endswith("loss")} for m in metrics]
    return {"epoch": progress["epoch"], "step": progress["step"], "losses": losses}


def write_corpus(folder):
    tokenizer = small_model("bert")[1]
    tokenizer.save(folder / "tokenizer")
    path = folder / "texts.txt"
    path.write_text("\n".join(text for text, _ in make_reviews(40)), encoding="utf-8")
    settings = CorpusSettings("lines", shard_mb=0.002)
    prepare_corpus([str(path)], tokenizer, folder / "corpus", settings)


def read_corpus(folder, _):
    corpus = open_corpus(folder / "corpus", load_tokenizer(folder / "tokenizer"))
    ids = [corpus.document(i).tolist() for i in (0, len(corpus) - 1)]
    counts = [corpus.token_counts.tolist(), corpus.sentence_counts.tolist()]
    return {"token_ids": ids, "counts": counts}


def write_cache(folder):
    model, tokenizer = small_model("bert")
    save_model(model, folder / "teacher", list(LABELS), tokenizer)
    read_cache(folder, None)


def read_cache(folder, _):
    """Return outputs of a teacher from their cache; they are computed where there is none."""
    teacher = load_model(folder / "teacher", "classifier", hidden_states=True)
    batches = LengthBatches(load_tokenizer(folder / "teacher").encode(TEXTS), 2)
    tensors = [("logits", None), ("hidden_states", -1)]
    outputs = compute_teacher_outputs(teacher, batches, tensors, folder / "cache")
    values = outputs.batch([0, 1], int(max(batches.lengths)))
    return {name: value.astype("float64").tolist() for name, value in values.items()}


def write_file(folder):
    folder.mkdir(parents=True)
    model, tokenizer = small_model("bert")
    export_tflite(model, folder / "model.tflite", tokenizer, list(LABELS), Export())


def read_file(folder, _):
    answers = TextClassifier(str(folder / "model.tflite")).classify(TEXTS)
    return {
        "labels": [a.label for a in answers],
        "scores": [list(a.probabilities.values()) for a in answers],
    }


# {part: (what writes its folder, what reads a file or folder, pattern of these)}
PARTS = {
    "models": (write_models, read_model, "*"),
    "archives": (write_archives, read_archive, "*.keras"),
    "run": (write_run, read_run, "."),
    "corpus": (write_corpus, read_corpus, "."),
    "cache": (write_cache, read_cache, "."),
    "file": (write_file, read_file, "."),
}


def found_in(folder):
    """Return {name: (path, what reads it)} of a version's folder."""
    return {
        path.relative_to(folder).as_posix(): (path, read)
        for part, (_, read, pattern) in PARTS.items()
        for path in sorted((folder / part).glob(pattern) if pattern != "." else [folder / part])
    }
