"""Pipelines of each task over a backend of fixed outputs."""

import numpy as np
import pytest

from tfnlp.pipelines import PIPELINES, Chooser, Classifier, Embedder, Scorer, Tagger, pipeline_of
from tfnlp.utils.errors import InputError

ROWS = {
    "classifier": {"probability": np.array([0.25, 0.75])},
    "tagger": {"probability": np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])},
    "scorer": {"score": np.array([1.5])},
    "chooser": {"score": np.array([1.5])},
    "answerer": {"start_logits": np.zeros(4), "end_logits": np.zeros(4)},
    "embedder": {"embedding": np.array([0.6, 0.8])},
}


class FixedBackend:
    """Gives the same outputs for every text."""

    def __init__(self, kind, tokenizer, **settings):
        self.kind, self.tokenizer, self.settings = kind, tokenizer, settings
        self.labels = {"classifier": ["bad", "good"], "tagger": ["O", "B-x"]}.get(kind)
        self.max_length = 4

    def run(self, encodings):
        return [ROWS[self.kind] for _ in encodings]


@pytest.mark.parametrize("kind", PIPELINES)
def test_a_backend_gets_the_pipeline_of_its_kind(kind, tokenizer):
    backend = FixedBackend(kind, tokenizer)
    assert type(pipeline_of(backend)) is PIPELINES[kind]
    other = "scorer" if kind == "classifier" else "classifier"
    with pytest.raises(InputError, match=f"is of the kind {kind}, and .* runs the kind {other}"):
        PIPELINES[other](backend)


def test_outputs_are_decoded(tokenizer):
    (label,) = Classifier(FixedBackend("classifier", tokenizer)).predict(["a fine film"])
    assert (label.label, label.probabilities) == ("good", {"bad": 0.25, "good": 0.75})
    assert label.truncated  # the text has 5 tokens, and the model takes 4
    (tagged,) = Tagger(FixedBackend("tagger", tokenizer)).predict(["fine film"])
    assert (tagged.tags, tagged.scores) == (["B-x", "O"], [0.8, 0.6])
    assert Scorer(FixedBackend("scorer", tokenizer)).predict(["a", "film"]) == [1.5, 1.5]
    (choice,) = Chooser(FixedBackend("chooser", tokenizer)).predict(["a"], [["film", "plot"]])
    assert (choice.place, choice.ending, choice.probabilities) == (0, "film", [0.5, 0.5])
    embedder = Embedder(FixedBackend("embedder", tokenizer))
    np.testing.assert_allclose(embedder.predict(["a", "film"]), [[0.6, 0.8]] * 2)
    assert embedder.predict([]).shape == (0, 0)


def test_a_choice_is_truncated_where_one_ending_is(tokenizer):
    chooser = Chooser(FixedBackend("chooser", tokenizer))
    groups = [["film", "plot"], ["film", "fine plot"], ["fine plot", "film"]]
    choices = chooser.choose_all([""] * 3, groups)  # with one word 4 tokens, the most it takes
    assert [choice.truncated for choice in choices] == [False, True, True]


def test_single_texts_are_refused_after_a_training_on_pairs(tokenizer):
    for kind in ("classifier", "scorer"):
        pipeline = pipeline_of(FixedBackend(kind, tokenizer, pairs=True))
        assert len(pipeline.predict(["a"], ["film"])) == 1
        with pytest.raises(InputError, match=r"^The model was trained on pairs of texts"):
            pipeline.predict(["a"])
