"""The record of each kind of models is the one place that says what it is."""

import pickle

import pytest

from distill import runtime
from tfnlp import tasks
from tfnlp.functional.links import LINKS
from tfnlp.pipelines import PIPELINES
from tfnlp.pipelines.prediction_tasks import TASKS
from tfnlp.tasks.kinds import KINDS, TEXT_KINDS, kind_of_head, kind_of_task
from tfnlp.utils.errors import InputError


def test_each_kind_is_run_decoded_and_reported():
    names = {kind.name for kind in TEXT_KINDS}
    assert set(PIPELINES) == names | {"token embedder"}
    assert set(TASKS) == names | {"token embedder", "string classifier"}
    for kind in KINDS.values():
        assert callable(getattr(runtime, kind.runner))
        assert kind.link is None or kind.link in LINKS
    classes = tasks.Classification, tasks.Regression, tasks.Tagging
    classes += tasks.QuestionAnswering, tasks.MultipleChoice, tasks.MultiLabelClassification
    assert {task.kind for task in (*classes, tasks.SentenceVectors)} == {*TEXT_KINDS}


@pytest.mark.parametrize(
    ("head", "classes", "kind"),
    [
        ("classifier", 2, "classifier"),
        ("classifier", 1, "scorer"),
        ("tagger", 1, "tagger"),
        ("chooser", None, "chooser"),
    ],
)
def test_a_head_and_its_classes_say_the_kind(head, classes, kind):
    assert kind_of_head(head, classes) is KINDS[kind]
    for other, said in (("masked_lm", "head 'masked_lm'"), (None, "without a head")):
        with pytest.raises(InputError, match=f"{said} gives no answers"):
            kind_of_head(other)


def test_a_kind_is_its_name_also_in_another_process():
    tagger = KINDS["tagger"]
    assert tagger == "tagger" and tagger in PIPELINES and f"{tagger}" == "tagger"
    again = pickle.loads(pickle.dumps(tagger))
    assert again == tagger != KINDS["classifier"]


def test_a_task_without_a_kind_is_named():
    class Mine(tasks.Classification):
        kind = None

    assert kind_of_task(None) == "classifier"
    with pytest.raises(InputError, match="Mine has no `kind`; give one of"):
        kind_of_task(Mine(["a", "b"]))
