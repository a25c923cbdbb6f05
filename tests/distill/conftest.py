"""A small model of each kind, as a folder and as a file."""

import keras
import pytest

from distill.export.options import Export
from distill.export.tflite import export_tflite
from tests.models.small import sizes
from tfnlp.checkpoints import save_model
from tfnlp.models import DistilBertConfig, build_model
from tfnlp.pipelines import Inputs

HEADS = {
    "classifier": ("classifier", 2, ["bad", "good"]),
    "multi-label classifier": ("multi_label_classifier", 2, ["bad", "good"]),
    "scorer": ("classifier", 1, ["score"]),
    "tagger": ("tagger", 3, ["O", "B-x", "I-x"]),
    "answerer": ("answerer", None, None),
    "chooser": ("chooser", None, None),
}
SETTINGS = {
    "multi-label classifier": {"thresholds": [0.4, 0.5]},
    "tagger": {"words": {"prefixes": ["("], "suffixes": [".", ")", "!"], "whole": ["a.", ":)"]}},
    "answerer": {"max_question_length": 3},
}
TEXTS = [
    "a fine film",
    "정말 지루하다",
    "the plot is not dull , the film is !",
    "dull",
    "x x film",
]
INPUTS = {
    "classifier": Inputs(TEXTS),
    "multi-label classifier": Inputs(TEXTS),
    "scorer": Inputs(TEXTS),
    "tagger": Inputs(TEXTS),
    "answerer": Inputs(["what film ?"] * 5, [f"{text} " * 4 for text in TEXTS]),
    "chooser": Inputs(TEXTS, [["fine", "dull film"]] * 5),
}


@pytest.fixture(scope="session")
def folders_and_files(tokenizer, tmp_path_factory):
    """({kind: folder}, {kind: path of a file})."""
    keras.utils.set_random_seed(0)
    place = tmp_path_factory.mktemp("models")
    fields = {"vocabulary_size": tokenizer.vocabulary_size, "max_length": 24}
    config = DistilBertConfig(**sizes(num_layers=1, hidden_dim=16, **fields))
    folders, files = {}, {}
    for kind, (head, classes, labels) in HEADS.items():
        model, settings = build_model(config, head, classes), SETTINGS.get(kind)
        folders[kind], files[kind] = place / kind, place / f"{kind}.tflite"
        save_model(model, folders[kind], labels, tokenizer, settings)
        export_tflite(
            model, files[kind], tokenizer, labels, Export("float32"), task_settings=settings
        )
    return folders, files


@pytest.fixture(scope="session")
def folders(folders_and_files):
    return folders_and_files[0]


@pytest.fixture(scope="session")
def files(folders_and_files):
    return folders_and_files[1]
