"""Kinds of models that answer texts: what each reads, gives and is run by, a record for each.

Needs neither TensorFlow nor Keras, as it is read on devices too.
"""

import dataclasses

from tfnlp.utils.errors import InputError


@dataclasses.dataclass(frozen=True, eq=False)
class Kind:
    """Kind of models.

    Args:
        name: as files keep it.
        head: of its models, as in `build_model`; None for the states alone.
        link: from the head's outputs to answers, a key of `tfnlp.functional.links.LINKS`; None
            where the outputs are no logits.
        runner: the name in `distill.runtime` of what runs a file.
        description: of a file, in which {text} is what it reads and {labels} its classes.
        outputs: {name: description} of a file's outputs, in the order of `reads`.
        reads: the names of the model's outputs that they come from.
        num_classes: of the head, where that tells the kind from another with the same head.
        by_token: whether outputs are by token, rather than by text.
        labelled: whether the head's outputs have names.
        pairs: whether it always or never reads pairs of texts; None where the training decides.
        reads_ids: whether a file takes the ids of a text.
        in_mediapipe: whether MediaPipe has a task for it.
    """

    name: str
    head: str | None
    link: str | None
    runner: str
    description: str = ""
    outputs: dict = dataclasses.field(default_factory=dict)
    reads: tuple = ("logits",)
    num_classes: int | None = None
    by_token: bool = False
    labelled: bool = False
    pairs: bool | None = None
    reads_ids: bool = True
    in_mediapipe: bool = False

    def __str__(self):
        return self.name

    # A kind is its name, also after it was pickled.
    def __eq__(self, other):
        return self.name == str(other)

    def __hash__(self):
        return hash(self.name)


CLASSIFIER = Kind(
    "classifier",
    head="classifier",
    link="softmax",
    runner="TextClassifier",
    description="Classifies {text} as one of: {labels}.",
    outputs={"probability": "The probability of each class."},
    labelled=True,
    in_mediapipe=True,
)
MULTI_LABEL_CLASSIFIER = Kind(
    "multi-label classifier",
    head="multi_label_classifier",
    link="sigmoid",
    runner="MultiLabelClassifier",
    description="Gives {text} any of the labels: {labels}.",
    outputs={"probability": "The probability of each label, by itself."},
    labelled=True,
    in_mediapipe=True,
)
SCORER = Kind(
    "scorer",
    head="classifier",
    link="identity",
    runner="SentenceScorer",
    description="Gives {text} a score.",
    outputs={"score": "The score of the text or pair."},
    num_classes=1,
)
CHOOSER = Kind(
    "chooser",
    head="chooser",
    link="softmax",
    runner="EndingChooser",
    description="Gives an ending of a text a score, the best the highest.",
    outputs={"score": "The score of the second text as the end of the first."},
    pairs=True,
)
TAGGER = Kind(
    "tagger",
    head="tagger",
    link="softmax",
    runner="TokenTagger",
    description="Tags words as one of: {labels}.",
    outputs={"probability": "The probability of each tag at each token."},
    by_token=True,
    labelled=True,
)
ANSWERER = Kind(
    "answerer",
    head="answerer",
    link="positions",
    runner="QuestionAnswerer",
    description="Finds the answer to a question in a text.",
    outputs={
        "start_logits": "The logit of an answer that starts at each token.",
        "end_logits": "The logit of an answer that ends at each token.",
    },
    reads=("start_logits", "end_logits"),
    by_token=True,
    pairs=True,
)
EMBEDDER = Kind(
    "embedder",
    head="embedder",
    link=None,
    runner="TextEmbedder",
    description="Embeds a text as a vector; similar texts have a large dot product.",
    outputs={"embedding": "The text as a vector of length 1."},
    reads=("embedding",),
    pairs=False,
    in_mediapipe=True,
)
TOKEN_EMBEDDER = dataclasses.replace(
    EMBEDDER,
    name="token embedder",
    runner="TokenEmbedder",
    outputs=EMBEDDER.outputs | {"token_embeddings": "Each token as a vector of length 1."},
    reads=("embedding", "sequence_output"),
    in_mediapipe=False,
)
STRING_CLASSIFIER = dataclasses.replace(
    CLASSIFIER, name="string classifier", runner="StringClassifier", reads_ids=False
)
GENERATOR = Kind("generator", "causal_lm", "softmax", "TextGenerator", reads_ids=False)
TRANSLATOR = Kind("translator", "sequence_to_sequence", "softmax", "Translator", reads_ids=False)

# Those that a model of texts is exported to, and a pipeline runs.
TEXT_KINDS = (CLASSIFIER, MULTI_LABEL_CLASSIFIER, SCORER, CHOOSER, TAGGER, ANSWERER, EMBEDDER)
OTHER_KINDS = (TOKEN_EMBEDDER, STRING_CLASSIFIER, GENERATOR, TRANSLATOR)
TASK_HEADS = tuple(dict.fromkeys(kind.head for kind in TEXT_KINDS))
KINDS = {kind.name: kind for kind in (*TEXT_KINDS, *OTHER_KINDS)}


def kind_of_task(task):
    """Return the `Kind` of a task; one of classes for None and for an objective, of tokens.

    Raises:
        InputError: for a task that does not say its own.
    """
    kind = getattr(task, "kind", CLASSIFIER)
    if not isinstance(kind, Kind):
        raise InputError(
            f"{type(task).__name__} has no `kind`; give one of tfnlp.tasks.kinds, such as "
            "CLASSIFIER, which says the model's head and outputs."
        )
    return kind


def kind_of(model):
    """Return the `Kind` of a model, by its head.

    Raises:
        InputError: if such models give no answers to texts.
    """
    logits = model.output.get("logits")
    return kind_of_head(model.head, None if logits is None else logits.shape[-1])


def named_head(head):
    """Return what a model with a head, or None, is called in messages."""
    return f"a model with the head {head!r}" if head else "an encoder without a head"


def kind_of_head(head, num_classes=None):
    """Return the `Kind` of a model of texts.

    Args:
        head: of the model.
        num_classes: the size of its logits; None where it has none.

    Raises:
        InputError: if such models give no answers to texts.
    """
    if head not in TASK_HEADS:
        raise InputError(
            f"{named_head(head).capitalize()} gives no answers to texts; fine-tune it to one of "
            f"{', '.join(TASK_HEADS)}, or give `pooling`, such as pooling='mean', for vectors; "
            "export_generator and export_translator take models that write texts."
        )
    kinds = [kind for kind in TEXT_KINDS if kind.head == head]
    return next((kind for kind in kinds if kind.num_classes == num_classes), kinds[0])
