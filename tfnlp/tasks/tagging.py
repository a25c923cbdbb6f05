"""Tags of words, such as named entities."""

import dataclasses
import pathlib

from tfnlp.errors import InputError
from tfnlp.losses import cross_entropy
from tfnlp.text.batches import IGNORED
from tfnlp.text.readers import read_lines
from tfnlp.text.tags import best_tags, first_tokens


@dataclasses.dataclass
class TaggedSentences:
    """Sentences as words, with a tag each.

    Args:
        sentences: a list of lists of words.
        tags: a list of lists of tags, or None.
    """

    sentences: list
    tags: list | None = None

    def __len__(self):
        return len(self.sentences)


def read_tagged(path, tag_names=None):
    """Reads CoNLL columns: a word and, last, its tag on each line; sentences end empty.

    Args:
        path: the file; lines that begin with `-DOCSTART-` are left out.
        tag_names: the tags there may be; any where None.

    Raises:
        InputError: if the file is missing, empty or not UTF-8, a line has no tag, or a tag
            is unknown.
    """
    path = pathlib.Path(path)
    sentences, tags = [[]], [[]]
    for number, line in read_lines(path):
        columns = line.split()
        if not columns or columns[0] == "-DOCSTART-":
            if sentences[-1]:
                sentences.append([])
                tags.append([])
            continue
        if len(columns) < 2:
            raise InputError(
                f"{path}, line {number}: {line!r} has a word but no tag; put it after a tab."
            )
        if tag_names is not None and columns[-1] not in tag_names:
            raise InputError(
                f"{path}, line {number}: tag {columns[-1]!r} is not one of the tags "
                f"({', '.join(tag_names)})."
            )
        sentences[-1].append(columns[0])
        tags[-1].append(columns[-1])
    if not sentences[-1]:
        sentences.pop()
        tags.pop()
    if not sentences:
        raise InputError(f"{path} holds no sentence; it needs a word and its tag on each line.")
    return TaggedSentences(sentences, tags)


def tag_names(examples):
    """The tags of sentences, "O" first, then sorted."""
    found = {tag for tags in examples.tags for tag in tags}
    return sorted(found, key=lambda tag: (tag != "O", tag))


class Tagging:
    """A tag for each word: its first token carries it (Devlin et al. 2019, section 5.3).

    Long sentences are read in windows; a word in two windows gets the tag of the one where
    it has more words around it.

    Args:
        label_names: the tags in order of their ids.
        stride: tokens that a window shares with the one before.
    """

    head = "tagger"
    outputs = ("logits",)
    monitor = "f1"

    def __init__(self, label_names, stride=32):
        self.label_names = list(label_names)
        self.num_classes = len(self.label_names)
        self.stride = stride

    def encode(self, tokenizer, examples, max_length):
        windows = tokenizer.encode_words(
            examples.sentences, max_length, min(self.stride, max_length // 4)
        )
        if examples.tags is None:
            return windows, None
        ids = {name: i for i, name in enumerate(self.label_names)}
        labels = []
        for window in windows:
            tags = examples.tags[window.example]
            row = [IGNORED] * len(window.words)
            for word, place in first_tokens(window):
                row[place] = ids[tags[word]]
            labels.append(row)
        return windows, labels

    def loss(self, labels, outputs, sample_weight=None):
        return cross_entropy(labels, outputs["logits"], sample_weight)

    def predict(self, sentences, encodings, outputs):
        """The tag of each word: a list of lists of names."""
        return best_tags(sentences, encodings, outputs["logits"], self.label_names)

    def score(self, examples, encodings, outputs):
        from seqeval import metrics

        found = self.predict(examples.sentences, encodings, outputs)
        right = sum(
            a == b
            for x, y in zip(found, examples.tags, strict=True)
            for a, b in zip(x, y, strict=True)
        )
        words = sum(map(len, examples.tags))
        return {
            "f1": float(metrics.f1_score(examples.tags, found)),
            "precision": float(metrics.precision_score(examples.tags, found, zero_division=0)),
            "recall": float(metrics.recall_score(examples.tags, found)),
            "word_accuracy": right / words,
        }
