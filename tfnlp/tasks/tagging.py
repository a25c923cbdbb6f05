"""Tagging of words or characters, such as named-entity recognition."""

import itertools
import statistics

from seqeval import metrics
from seqeval.metrics import sequence_labeling
from seqeval.scheme import IOB2
from sklearn.metrics import f1_score

from tfnlp.tasks.kinds import TAGGER
from tfnlp.tasks.tagged_files import BIO_TAG, TaggedSentences, check_unit, read_tagged, tag_names
from tfnlp.tasks.task import Task
from tfnlp.text.batching.batches import IGNORED
from tfnlp.text.decoding.character_tags import best_character_tags, token_characters
from tfnlp.text.decoding.tags import ENTITY_TAG, best_tags, first_tokens
from tfnlp.text.reading.readers import check_label_names
from tfnlp.utils.errors import InputError

__all__ = ["TaggedSentences", "Tagging", "read_tagged", "tag_names"]


class Tagging(Task):
    """A tag for each word, or for each character.

    The first token of a word carries its tag (Devlin et al. 2019, section 5.3). For characters,
    texts are tokenised whole (Park et al. 2021, 'KLUE', section 3.4). Each token carries the tag
    of its first character, and a predicted tag applies to all characters of its token.

    Long sentences are split into windows. A word in two windows gets its tag from the window where
    it has more context on both sides.

    For words the score is the F1 of entities if tags are in BIO, IOBES or BILOU, else the share of
    correct tags. For characters it is `macro_f1`, KLUE's mean of the F1 over entity types.

    Args:
        label_names: the tags in order of their ids.
        stride: the number of tokens shared by consecutive windows.
        unit: "word" or "character"; characters need BIO tags.
        splitter: the `WordSplitter` of the training sentences (`tfnlp.text.reading.words`), by
            which the model's runners split texts into words; None for white space alone.

    Raises:
        InputError: for fewer than 2 tags, an empty or duplicate tag, an unknown unit, or a tag
            outside BIO for characters.
    """

    kind = TAGGER

    def __init__(self, label_names, stride=32, unit="word", splitter=None):
        check_label_names(label_names, least=2)
        check_unit(unit)
        self.label_names = list(label_names)
        self.unit = unit
        self.settings = {"unit": unit, "stride": stride}
        if splitter is not None:
            self.settings["words"] = splitter.settings()
        self.of_entities = all(ENTITY_TAG.fullmatch(tag) for tag in self.label_names)
        self.scores = ("f1", "precision", "recall") if self.of_entities else ()
        self.scores += ("word_accuracy",)
        self.monitor = self.scores[0]
        if unit == "character":
            self.scores = ("f1", "precision", "recall", "macro_f1")
            self.scores += ("character_macro_f1", "character_accuracy")
            self.monitor = "macro_f1"
            for tag in self.label_names:
                if not BIO_TAG.fullmatch(tag):
                    raise InputError(
                        f"Tag {tag!r} is not a BIO tag (O, B-x, I-x), as unit='character' needs."
                    )
        self.num_classes = len(self.label_names)
        self.stride = stride

    def encode(self, tokenizer, examples, max_length):
        by_character = self.unit == "character"
        encode = tokenizer.encode_text_windows if by_character else tokenizer.encode_words
        windows = encode(examples.sentences, max_length, min(self.stride, max_length // 4))
        if examples.tags is None:
            return windows, None
        self._check_tags(examples)
        ids = {name: i for i, name in enumerate(self.label_names)}
        labels = []
        for window in windows:
            tags = examples.tags[window.example]
            row = [IGNORED] * len(window.token_ids)
            if by_character:
                for place, start, _ in token_characters(
                    window, examples.sentences[window.example]
                ):
                    row[place] = ids[tags[start]]
            else:
                for word, place in first_tokens(window):
                    row[place] = ids[tags[word]]
            labels.append(row)
        return windows, labels

    def _check_tags(self, examples):
        for i, (sentence, tags) in enumerate(zip(examples.sentences, examples.tags, strict=True)):
            if len(sentence) != len(tags):
                raise InputError(
                    f"sentences[{i}] has {len(sentence)} {self.unit}s and {len(tags)} tags; give "
                    "each a tag."
                )

    def decode(self, examples, encodings, outputs):
        """Return the tag of each word or character, a list of lists of names."""
        best = best_character_tags if self.unit == "character" else best_tags
        return best(examples.sentences, encodings, outputs["logits"], self.label_names)

    def score_predictions(self, examples, predictions):
        if self.unit == "character":
            return _character_scores(examples, predictions)
        scores = {"word_accuracy": _accuracy(examples.tags, predictions)}
        return _entity_scores(examples.tags, predictions) | scores if self.of_entities else scores

    def answers(self, examples, predictions):
        return tuple(list(itertools.chain(*tags)) for tags in (examples.tags, predictions))

    def baseline(self, examples):
        majority = statistics.mode(itertools.chain(*examples.tags))
        constant = [[majority] * len(tags) for tags in examples.tags]
        return self.score_predictions(examples, constant)


def _accuracy(tags, predictions):
    """Return the share of correct tags."""
    pairs = zip(itertools.chain(*tags), itertools.chain(*predictions), strict=True)
    return statistics.fmean(tag == predicted for tag, predicted in pairs)


def _entity_scores(tags, predictions):
    """Return F1, precision and recall of all entities, as in CoNLL's script."""
    precision, recall, f1, _ = sequence_labeling.precision_recall_fscore_support(
        _seqeval_tags(tags), _seqeval_tags(predictions), average="micro", zero_division=0
    )
    return {"f1": float(f1), "precision": float(precision), "recall": float(recall)}


def _character_scores(examples, predictions):
    """Return scores that exclude white space, which KLUE does not count.

    `macro_f1` is KLUE's entity F1, by the strict rules of IOB2. `character_macro_f1` is its
    character F1, the mean over tags.
    """
    tags, predictions = (
        [
            [tag for character, tag in zip(*pair, strict=True) if not character.isspace()]
            for pair in zip(examples.sentences, rows, strict=True)
        ]
        for rows in (examples.tags, predictions)
    )
    flat = [list(itertools.chain(*rows)) for rows in (tags, predictions)]
    macro_f1 = 0.0  # without entities seqeval takes the mean of nothing
    if any(tag.startswith("B") for tag in itertools.chain(*flat)):
        strict = {"average": "macro", "mode": "strict", "scheme": IOB2, "zero_division": 0}
        macro_f1 = float(metrics.f1_score(tags, predictions, **strict))
    return _entity_scores(tags, predictions) | {
        "macro_f1": macro_f1,
        "character_macro_f1": float(f1_score(*flat, average="macro", zero_division=0)),
        "character_accuracy": _accuracy(tags, predictions),
    }


def _seqeval_tags(sentences):
    """Convert tags for seqeval, which knows only E and S for the end and the single word."""
    prefixes = {"L": "E", "U": "S"}
    return [[prefixes.get(tag[0], tag[0]) + tag[1:] for tag in tags] for tags in sentences]
