"""Tags of words, such as named entities."""

import dataclasses
import pathlib
import re

from tfnlp.errors import InputError
from tfnlp.losses import cross_entropy
from tfnlp.text.batches import IGNORED
from tfnlp.text.readers import check_label_names, read_lines
from tfnlp.text.tags import best_tags, first_tokens

# BIO: outside, at the beginning of, or inside an entity of some kind.
_BIO_TAG = re.compile(r"O|[BI]-.+")
# The same and IOBES or BILOU, which tag the end and a single word too; a kind may be missing.
_ENTITY_TAG = re.compile(r"O|[BIESLU](-.+)?")
_COMMENT = re.compile(r"#+ ")


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

    Columns are separated by tabs, between which a word may hold spaces, or by spaces; their
    number is that of the first line. Lines that begin with `-DOCSTART-`, and comments (`# `
    or `## ` before a sentence, without a tab), are left out.

    Args:
        path: the file.
        tag_names: the tags there may be; those of BIO (`O`, `B-x`, `I-x`) where None.

    Raises:
        InputError: if the file is missing, empty or not UTF-8, a line has no tag or other
            columns than the first, or a tag is not one of those.
    """
    path = pathlib.Path(path)
    allowed = set(tag_names).__contains__ if tag_names else _BIO_TAG.fullmatch
    sentences, tags = [[]], [[]]
    first = None  # the first line with a word: its number and its layout
    for number, line in read_lines(path):
        columns, layout = _columns(line)
        if not columns or columns[0] == "-DOCSTART-":
            if sentences[-1]:
                sentences.append([])
                tags.append([])
            continue
        like_others = first is None or layout == first[1]
        word_and_tag = like_others and allowed(columns[-1])  # as "# O" is, too
        comment = _COMMENT.match(line) and "\t" not in line and not word_and_tag
        if comment and not sentences[-1]:
            continue
        if len(columns) < 2 or not columns[0]:
            lacks = "a word but no tag" if columns[0] else "a tag but no word"
            raise InputError(
                f"{path}, line {number}: {line!r} has {lacks}; put the word before a tab and its "
                "tag after."
            )
        if not like_others:
            raise InputError(
                f"{path}, line {number}: {layout}, but line {first[0]} has {first[1]}."
            )
        if not allowed(columns[-1]):
            expected = f"one of the tags ({', '.join(tag_names)})" if tag_names else "of BIO"
            raise InputError(
                f"{path}, line {number}: tag {columns[-1]!r} is not {expected}; leave headers "
                "out, and where tags are others than O, B-x and I-x give all of them as `labels`."
            )
        first = first or (number, layout)
        sentences[-1].append(columns[0])
        tags[-1].append(columns[-1])
    if not sentences[-1]:
        sentences.pop()
        tags.pop()
    if not sentences:
        raise InputError(f"{path} holds no sentence; it needs a word and its tag on each line.")
    return TaggedSentences(sentences, tags)


def _columns(line):
    """A line's columns, and their layout in words; tabs separate them if it has any."""
    if not line.strip():
        return [], None
    if "\t" in line:
        columns = [column.strip() for column in line.split("\t")]
        return columns, f"{len(columns)} columns separated by tabs"
    columns = [column for column in line.split(" ") if column]
    return columns, f"{len(columns)} columns separated by spaces"


def tag_names(examples):
    """The tags of sentences, "O" first, then sorted."""
    found = {tag for tags in examples.tags for tag in tags}
    return sorted(found, key=lambda tag: (tag != "O", tag))


class Tagging:
    """A tag for each word: its first token carries it (Devlin et al. 2019, section 5.3).

    Long sentences are read in windows; a word in two windows gets the tag of the one where
    it has more words around it.

    The score is the F1 of entities, where tags are of BIO, IOBES or BILOU; else the share of
    words with the right tag.

    Args:
        label_names: the tags in order of their ids.
        stride: tokens that a window shares with the one before.

    Raises:
        InputError: for fewer than 2 tags, or one that is empty or given twice.
    """

    head = "tagger"
    outputs = ("logits",)

    def __init__(self, label_names, stride=32):
        check_label_names(label_names, least=2)
        self.label_names = list(label_names)
        self.of_entities = all(_ENTITY_TAG.fullmatch(tag) for tag in self.label_names)
        self.monitor = "f1" if self.of_entities else "word_accuracy"
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
        words = {"word_accuracy": right / sum(map(len, examples.tags))}
        if not self.of_entities:
            return words
        tags = _seqeval_tags(examples.tags), _seqeval_tags(found)
        return {
            "f1": float(metrics.f1_score(*tags)),
            "precision": float(metrics.precision_score(*tags, zero_division=0)),
            "recall": float(metrics.recall_score(*tags)),
        } | words


def _seqeval_tags(sentences):
    """Tags as seqeval reads them: it knows the end and the single word by E and S alone."""
    others = {"L": "E", "U": "S"}
    return [[others.get(tag[0], tag[0]) + tag[1:] for tag in tags] for tags in sentences]
