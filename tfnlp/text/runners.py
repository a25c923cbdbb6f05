"""What models say of texts: labels, entities, answers, numbers and choices.

Each class here is the half of a runner that knows its task. The other half runs the model, by
LiteRT (`distill.device.runtime.TextRunner`) or by Keras (`tfnlp.training.runners.ModelRunner`).
It has

- `tokenizer`, `max_length` and, where there are some, `labels` of the model;
- `settings`: a dict of how the model was trained, which may be empty;
- `outputs_of(encodings)`: a list with {name: array without batch} for each encoding.
"""

import collections.abc
import dataclasses

import numpy as np

from tfnlp.errors import InputError
from tfnlp.text.answers import best_answers
from tfnlp.text.character_tags import best_characters
from tfnlp.text.tags import ENTITY_TAG, TaggedText, best_rows, outside
from tfnlp.text.texts import as_sentences, as_texts, check_whole
from tfnlp.text.tokenizer import MAX_QUESTION_LENGTH
from tfnlp.text.words import WordSplitter


@dataclasses.dataclass(frozen=True)
class Classification:
    """What a classifier says of one text.

    Args:
        label: the most probable class.
        probabilities: {label: probability}, in the model's order.
        cut: whether the text was longer than the model reads, and its end ignored.
    """

    label: str
    probabilities: dict
    cut: bool


@dataclasses.dataclass(frozen=True)
class Choice:
    """What a chooser says of one beginning.

    Args:
        place: of the most probable ending, from 0.
        ending: that one.
        probabilities: of each ending, in their order.
        cut: whether the beginning with one of the endings was longer than the model reads.
    """

    place: int
    ending: str
    probabilities: list
    cut: bool


class _OtherKind(InputError, AttributeError):
    """An attribute that a runner of another kind has, so that `hasattr` is false."""


class Runner:
    """One that is asked for what a runner of another kind does says so."""

    def __getattr__(self, name):
        others = [kind for kind in Runner.__subclasses__() if name in vars(kind)]
        if name.startswith("_") or not others:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        own = next(kind for kind in type(self).__mro__ if kind in Runner.__subclasses__())
        can = [key for key, value in vars(own).items() if callable(value) and key[0] != "_"]
        raise _OtherKind(
            f"{name} is of the kind {' or '.join(kind.kind for kind in others)}, and this model "
            f"is of the kind {self.kind}, which has {', '.join(can)}; call one of these, or give "
            "another model."
        )

    def _check_pairs(self, pairs):
        """Raises an InputError for single texts where `settings` say that pairs were learned."""
        if pairs is None and self.settings.get("pairs"):
            raise InputError(
                "The model was trained on pairs of texts, and single texts are given; give each "
                "its second text, by `pairs`, or by `pair` or `pair_column` of a recipe."
            )


class Classifier(Runner):
    """Classes of texts: outputs `probability`, (C,)."""

    kind = "classifier"

    def classify(self, texts, pairs=None):
        """Classifies texts, or pairs of texts.

        Args:
            texts: a list of strings; a string is a list of one.
            pairs: the second texts, one for each, or None.

        Returns:
            A list of `Classification`, one for each text.

        Raises:
            InputError: for single texts, where the model was trained on pairs.
        """
        self._check_pairs(pairs)
        encodings = self.tokenizer.encode(texts, pairs, max_length=self.max_length)
        return [
            self.classification(outputs["probability"], bool(cut))
            for outputs, cut in zip(self.outputs_of(encodings), encodings.cut, strict=True)
        ]

    def classification(self, probabilities, cut):
        """The `Classification` of one text's probabilities (C,)."""
        return Classification(
            self.labels[int(np.argmax(probabilities))],
            {label: float(p) for label, p in zip(self.labels, probabilities, strict=True)},
            cut,
        )


class Tagger(Runner):
    """Tags of words: outputs `probability`, (L, C).

    A text that is not split into words is split as the training data was, where `settings` has
    that as `words`, else at white space. Where `settings` have character for a `unit`, each
    character of the text stands for a word, and is tagged as the text's tokens are. Windows share
    the `stride` of `settings`, or a quarter of their tokens.
    """

    kind = "tagger"

    def tag(self, sentences):
        """Tags words; long sentences are read in windows.

        Args:
            sentences: a list of lists of words, or of strings, which are split; a string is a
                list of one.

        Returns:
            A list of lists of (word, tag), one for each sentence; without words, an empty one.
        """
        return [list(zip(t.words, t.tags, strict=True)) for t in self.read(sentences)]

    def entities(self, sentences):
        """The entities in sentences, by tags of BIO, IOBES or BILOU.

        Args:
            sentences: as `tag` takes them. Places in a list of words are those in the words
                joined by spaces.

        Returns:
            A list of lists of `tfnlp.text.tags.Entity`, one for each sentence.

        Raises:
            InputError: where the tags are of no entities, such as parts of speech.
        """
        if not self.of_entities:
            raise InputError(
                f"The tags {', '.join(self.labels)} are of no entities (O, B-x, I-x); use tag."
            )
        return [tagged.entities for tagged in self.read(sentences)]

    def read(self, sentences):
        """Tags, their places and their probabilities, from which the others are made.

        Args:
            sentences: as `tag` takes them.

        Returns:
            A list of `tfnlp.text.tags.TaggedText`.
        """
        texts, spans = self._split(sentences)
        if self.by_character:
            return self._read_characters(texts)
        words = [[text[a:b] for a, b in row] for text, row in zip(texts, spans, strict=True)]
        windows = self.tokenizer.encode_words(words, self.max_length, self._stride)
        outputs = [row["probability"] for row in self.outputs_of(windows)]
        nothing = np.eye(len(self.labels))[outside(self.labels)]  # where a word has no token
        found = []
        for text, places, rows in zip(
            texts, spans, best_rows(words, windows, outputs), strict=True
        ):
            rows = [nothing if row is None else row for row in rows]
            tags = [self.labels[int(row.argmax())] for row in rows]
            found.append(TaggedText(text, places, tags, [float(row.max()) for row in rows]))
        return found

    def _read_characters(self, texts):
        windows = self.tokenizer.encode_text_windows(texts, self.max_length, self._stride)
        outputs = [row["probability"] for row in self.outputs_of(windows)]
        found = []
        for text, characters in zip(
            texts, best_characters(texts, windows, outputs, self.labels), strict=True
        ):
            tags, scores = ([pair[i] for pair in characters] for i in (0, 1))
            found.append(TaggedText(text, [(i, i + 1) for i in range(len(text))], tags, scores))
        return found

    @property
    def by_character(self):
        """Whether each character has a tag, and not each word."""
        return self.settings.get("unit") == "character"

    @property
    def _stride(self):
        # As `tfnlp.tasks.Tagging` has it in training.
        quarter = self.max_length // 4
        return min(self.settings.get("stride", quarter), quarter)

    @property
    def of_entities(self):
        """Whether the tags are of entities: of BIO, IOBES or BILOU."""
        return all(ENTITY_TAG.fullmatch(tag) for tag in self.labels)

    def _split(self, sentences):
        """The texts, and the spans of their words."""
        if isinstance(sentences, str):
            sentences = [sentences]
        elif isinstance(sentences, collections.abc.Iterator):
            sentences = list(sentences)
        lists = as_sentences(sentences)
        splitter = WordSplitter.from_settings(self.settings.get("words"))
        texts, spans = [], []
        for given, words in zip(sentences, lists, strict=True):
            if isinstance(given, str):
                texts += as_texts(given)
                spans.append(splitter.spans(texts[-1]))
            else:
                texts.append(" ".join(words))
                ends = np.cumsum([len(word) + 1 for word in words], dtype=int) - 1
                spans.append([(int(b) - len(w), int(b)) for w, b in zip(words, ends, strict=True)])
        return texts, spans


class Answerer(Runner):
    """Answers in texts: outputs `start_logits` and `end_logits`, (L,).

    Questions are cut to the `max_question_length` of `settings`, and windows share its `stride`,
    where it has them.
    """

    kind = "answerer"

    def answer(self, question, context, null_answers=None, count=1):
        """Finds the answer to a question; long texts are read in windows.

        Args:
            question: a string.
            context: the text to look in.
            null_answers: whether the text may not answer it; where None, as `settings` say
                that the model was trained, else not.
            count: how many answers to give.

        Returns:
            A list of `tfnlp.text.answers.Answer`, best first: text, its first character and
            the one after its last, score, probability, and whether the question was cut.

        Raises:
            InputError: for a `count` below 1.
        """
        return self.answer_all([question], [context], null_answers, count)[0]

    def answer_all(self, questions, contexts, null_answers=None, count=1):
        """Finds the answers to many questions, each in its own text.

        Args:
            questions: a list of strings.
            contexts: the texts to look in, one for each.
            null_answers, count: as `answer` takes them.

        Returns:
            A list of lists as `answer` gives.
        """
        check_whole(count=count)
        if count < 1:
            raise InputError(f"count={count} must be at least 1.")
        if null_answers is None:
            null_answers = self.settings.get("null_answers", False)
        windows = self.tokenizer.encode_windows(
            questions,
            contexts,
            self.max_length,
            self.settings.get("stride", self.max_length // 4),
            self.settings.get("max_question_length", MAX_QUESTION_LENGTH),
        )
        outputs = self.outputs_of(windows)
        starts = [o["start_logits"] for o in outputs]
        ends = [o["end_logits"] for o in outputs]
        return best_answers(windows, starts, ends, as_texts(contexts), null_answers, count)


class Scorer(Runner):
    """A number for a text or a pair: output `score`, (1,)."""

    kind = "scorer"

    def score(self, texts, pairs=None):
        """The number of each text, or pair of texts.

        Args:
            texts: a list of strings; a string is a list of one.
            pairs: the second texts, one for each, or None.

        Returns:
            A list of floats, one for each text.

        Raises:
            InputError: for single texts, where the model was trained on pairs.
        """
        self._check_pairs(pairs)
        encodings = self.tokenizer.encode(texts, pairs, max_length=self.max_length)
        return [float(outputs["score"][0]) for outputs in self.outputs_of(encodings)]


class Chooser(Runner):
    """The best of several endings: output `score`, (1,), of a beginning with one of them."""

    kind = "chooser"

    def choose(self, prompt, endings):
        """The ending that goes with a beginning.

        Args:
            prompt: a string.
            endings: a list of strings.

        Returns:
            A `Choice`.

        Raises:
            InputError: if there is no ending.
        """
        return self.choose_all([prompt], [endings])[0]

    def choose_all(self, prompts, endings):
        """The endings that go with many beginnings.

        Args:
            prompts: a list of strings.
            endings: a list of strings for each; there may be more for one than for another.

        Returns:
            A list of `Choice`.
        """
        prompts = as_texts(prompts, "prompts")
        groups = [as_texts(group, f"endings[{i}]") for i, group in enumerate(endings)]
        if len(groups) != len(prompts):
            raise InputError(
                f"endings holds {len(groups)} lists and prompts {len(prompts)} texts; give one "
                "list for each."
            )
        if not all(groups):
            raise InputError(
                f"endings[{groups.index([])}] is empty; give at least one ending to choose."
            )
        firsts = [p for p, group in zip(prompts, groups, strict=True) for _ in group]
        seconds = [ending for group in groups for ending in group]
        encodings = self.tokenizer.encode(firsts, seconds, max_length=self.max_length)
        scores = np.array([outputs["score"][0] for outputs in self.outputs_of(encodings)], float)
        found, start = [], 0
        for group in groups:
            here = slice(start, start + len(group))
            start = here.stop
            chances = np.exp(scores[here] - scores[here].max())
            chances = (chances / chances.sum()).tolist()
            place = int(scores[here].argmax())
            found.append(Choice(place, group[place], chances, bool(encodings.cut[here].any())))
        return found


class Embedder(Runner):
    """Texts as vectors: output `embedding`, (D,), of length 1."""

    kind = "embedder"

    def embed(self, texts, pairs=None):
        """The vector of each text, or pair of texts; those of similar texts have a large product.

        Args:
            texts: a list of strings; a string is a list of one.
            pairs: the second texts, one for each, or None.

        Returns:
            A float32 array (texts, D), whose rows have length 1: `rows @ rows.T` is the cosine of
            each two.
        """
        encodings = self.tokenizer.encode(texts, pairs, max_length=self.max_length)
        rows = [outputs["embedding"] for outputs in self.outputs_of(encodings)]
        return np.array(rows, "float32") if rows else np.zeros((0, 0), "float32")
