"""Pipelines: texts in; labels, tags, answers, scores, choices or embeddings out.

A pipeline is one task. It encodes texts, lets a backend run the model, and decodes the outputs.
The backend is `tfnlp.pipelines.keras_backend.KerasBackend` for a Keras model, or
`distill.runtime.litert_backend.LiteRtBackend` for an exported file. It provides

- `kind`: of the model, a `tfnlp.tasks.kinds.Kind` or its name, a key of `PIPELINES`;
- `tokenizer`, `max_length` and, for a classifier or tagger, `labels` of the model;
- `settings`: a dict of the training settings, which may be empty;
- `run(encodings)`: a list of {name: array without batch axis}, one for each encoding.

Needs neither TensorFlow nor Keras, as it runs on devices too.
"""

import abc
import collections.abc
import dataclasses

import numpy as np

from tfnlp.tasks.classifier_settings import Decision
from tfnlp.tasks.kinds import (
    ANSWERER,
    CHOOSER,
    CLASSIFIER,
    EMBEDDER,
    MULTI_LABEL_CLASSIFIER,
    SCORER,
    TAGGER,
    TOKEN_EMBEDDER,
)
from tfnlp.tasks.vector_settings import DOCUMENT_PROMPTS
from tfnlp.text.decoding.answers import best_answers
from tfnlp.text.decoding.character_tags import best_characters
from tfnlp.text.decoding.tags import ENTITY_TAG, TaggedText, best_rows, outside
from tfnlp.text.reading.text_arguments import as_sentences, as_texts
from tfnlp.text.reading.words import WordSplitter
from tfnlp.text.tokenizers.tokenizer import MAX_QUESTION_LENGTH
from tfnlp.utils.errors import InputError, unknown_name
from tfnlp.utils.settings import check_at_least


@dataclasses.dataclass(frozen=True)
class Classification:
    """The prediction of a classifier for one text.

    Args:
        label: the most probable class, or the `none_label` of the settings where its probability
            is below their `threshold`.
        probabilities: {label: probability}, in the model's order.
        truncated: whether the text exceeded the model's length limit and lost its end.
    """

    label: str
    probabilities: dict
    truncated: bool


@dataclasses.dataclass(frozen=True)
class Labels:
    """The prediction of a classifier of several labels for one text.

    Args:
        labels: those that apply, a tuple in the model's order: each whose probability is at least
            its threshold.
        probabilities: {label: probability}, in the model's order.
        truncated: whether the text exceeded the model's length limit and lost its end.
    """

    labels: tuple
    probabilities: dict
    truncated: bool


@dataclasses.dataclass(frozen=True)
class Choice:
    """The prediction of a multiple-choice model for one prompt.

    Args:
        place: the index of the most probable ending, from 0.
        ending: the most probable ending.
        probabilities: the probability of each ending, in order.
        truncated: whether the prompt with one of the endings exceeded the model's length limit.
    """

    place: int
    ending: str
    probabilities: list
    truncated: bool


class Pipeline(abc.ABC):
    """Base class of pipelines.

    Args:
        backend: runs the model, see the module.

    Raises:
        InputError: if the backend's model is of another task.
    """

    kind = None

    def __init__(self, backend):
        if str(backend.kind) != self.kind.name:
            raise InputError(
                f"The model is of the kind {backend.kind}, and {type(self).__name__} runs the "
                f"kind {self.kind}; use load_runner, which takes any."
            )
        self.backend = backend
        self.tokenizer = backend.tokenizer
        self.labels = backend.labels
        self.settings = backend.settings
        self.max_length = backend.max_length

    @abc.abstractmethod
    def predict(self, texts, second_texts=None):
        """Return the prediction for each text, with its second text if the task takes pairs."""

    def _check_pairs(self, pairs):
        """Raise an InputError for single texts if the model was trained on pairs."""
        if pairs is None and self.settings.get("pairs"):
            raise InputError(
                "The model was trained on pairs of texts, and single texts are given; give each "
                "its second text, by `pairs`, or by `pair` or `pair_column` of a recipe."
            )


class Classifier(Pipeline):
    """Text classifier; reads the output `probability`, (C,), and gives `Classification`s.

    Where the probability of the most probable class is below the `threshold` in `settings`, the
    answer is their `none_label`.
    """

    kind = CLASSIFIER

    def __init__(self, backend):
        super().__init__(backend)
        self.decision = Decision.from_settings(self.settings)

    def classify(self, texts, pairs=None):
        """Return the prediction of each text, or pair of texts, a list.

        Args:
            texts: a list of strings, or a single string.
            pairs: the second texts, one for each, or None.

        Raises:
            InputError: if single texts are passed to a model trained on pairs.
        """
        self._check_pairs(pairs)
        encodings = self.tokenizer.encode(texts, pairs, max_length=self.max_length)
        return self._decode(self.backend.run(encodings), encodings.truncated)

    def _decode(self, outputs, truncated):
        """Return the prediction of each row of the backend's outputs."""
        rows = ([*map(float, row["probability"])] for row in outputs)
        probabilities = (dict(zip(self.labels, row, strict=True)) for row in rows)
        pairs = zip(probabilities, map(bool, truncated), strict=True)
        return [self._prediction(*pair) for pair in pairs]

    def _prediction(self, probabilities, truncated):
        label = max(probabilities, key=probabilities.get)
        if probabilities[label] < self.decision.threshold:
            label = self.decision.none_label
        return Classification(label, probabilities, truncated)

    def predict(self, texts, second_texts=None):
        return self.classify(texts, second_texts)


class MultiLabelClassifier(Classifier):
    """Multi-label classifier; reads the output `probability`, (C,), and gives `Labels`.

    A label applies where its probability is at least its threshold, of the `thresholds` in
    `settings`, 0.5 if there are none.
    """

    kind = MULTI_LABEL_CLASSIFIER

    def __init__(self, backend):
        super().__init__(backend)
        self.thresholds = thresholds_of(self.settings, self.labels or [])

    def _prediction(self, probabilities, truncated):
        above = zip(probabilities.items(), self.thresholds, strict=True)
        labels = tuple(label for (label, p), threshold in above if p >= threshold)
        return Labels(labels, probabilities, truncated)


def thresholds_of(settings, labels):
    """Return the threshold of each label, 0.5 if the settings of a model have none.

    Raises:
        InputError: if they are of other labels, or no probabilities.
    """
    thresholds = settings.get("thresholds", [0.5] * len(labels))
    fits = isinstance(thresholds, list) and len(thresholds) == len(labels)
    if not fits or not all(isinstance(t, int | float) and 0 <= t <= 1 for t in thresholds):
        raise InputError(
            f"The `thresholds` of the model's settings are no probabilities of its {len(labels)} "
            "labels; take them out of config.json, for 0.5, or fine-tune it again."
        )
    return thresholds


class Tagger(Pipeline):
    """Word or character tagger; reads the output `probability`, (L, C).

    Strings are split into words as the training data was, by the `words` of `settings`, else at
    white space. If the `unit` in `settings` is "character", each character gets a tag, and texts
    are tokenised whole. Windows overlap by the `stride` of `settings`, at most and by default a
    quarter of their length.
    """

    kind = TAGGER

    def tag(self, sentences):
        """Return the (word, tag) pairs of each sentence, a list of lists.

        Long sentences are split into windows.

        Args:
            sentences: a list of lists of words, or of strings, which are split into words; or a
                single string.
        """
        return [list(zip(t.words, t.tags, strict=True)) for t in self.predict(sentences)]

    def entities(self, sentences):
        """Return the entities of each sentence, from BIO, IOBES or BILOU tags, as
        `tfnlp.text.decoding.tags.Entity`.

        Args:
            sentences: as in `tag`. For a list of words, positions count in the words joined by
                spaces.

        Raises:
            InputError: if the tags do not mark entities, such as parts of speech.
        """
        if not all(ENTITY_TAG.fullmatch(tag) for tag in self.labels):
            raise InputError(
                f"The tags {', '.join(self.labels)} mark no entities (O, B-x, I-x); use tag."
            )
        return [tagged.entities for tagged in self.predict(sentences)]

    def predict(self, texts, second_texts=None):
        """Return the tags, spans and probabilities of each sentence, as
        `tfnlp.text.decoding.tags.TaggedText`.

        Args:
            texts: the sentences, as in `tag`.
            second_texts: None, as tagging has none.
        """
        texts, spans = self._split(texts)
        if self.settings.get("unit") == "character":
            return self._tag_characters(texts)
        words = [[text[a:b] for a, b in row] for text, row in zip(texts, spans, strict=True)]
        windows = self.tokenizer.encode_words(words, self.max_length, self._stride)
        outputs = [row["probability"] for row in self.backend.run(windows)]
        outside_row = np.eye(len(self.labels))[outside(self.labels)]  # for words without a token
        tagged_texts = []
        for text, places, rows in zip(
            texts, spans, best_rows(words, windows, outputs), strict=True
        ):
            rows = [outside_row if row is None else row for row in rows]
            tags = [self.labels[int(row.argmax())] for row in rows]
            tagged_texts.append(TaggedText(text, places, tags, [float(row.max()) for row in rows]))
        return tagged_texts

    def _tag_characters(self, texts):
        windows = self.tokenizer.encode_text_windows(texts, self.max_length, self._stride)
        outputs = [row["probability"] for row in self.backend.run(windows)]
        tagged_texts = []
        for text, characters in zip(
            texts, best_characters(texts, windows, outputs, self.labels), strict=True
        ):
            tags, scores = ([pair[i] for pair in characters] for i in (0, 1))
            spans = [(i, i + 1) for i in range(len(text))]
            tagged_texts.append(TaggedText(text, spans, tags, scores))
        return tagged_texts

    @property
    def _stride(self):
        # The same limit as in training (`tfnlp.tasks.Tagging`).
        quarter = self.max_length // 4
        return min(self.settings.get("stride", quarter), quarter)

    def _split(self, sentences):
        """Return the texts and the spans of their words."""
        if isinstance(sentences, str):
            sentences = [sentences]
        elif isinstance(sentences, collections.abc.Iterator):
            sentences = list(sentences)
        lists = as_sentences(sentences)
        splitter = WordSplitter.from_settings(self.settings.get("words"))
        texts, spans = [], []
        for sentence, words in zip(sentences, lists, strict=True):
            if isinstance(sentence, str):
                texts += as_texts(sentence)
                spans.append(splitter.spans(texts[-1]))
            else:
                texts.append(" ".join(words))
                ends = np.cumsum([len(word) + 1 for word in words], dtype=int) - 1
                spans.append([(int(b) - len(w), int(b)) for w, b in zip(words, ends, strict=True)])
        return texts, spans


class Answerer(Pipeline):
    """Extractive question answering; reads the outputs `start_logits` and `end_logits`, (L,).

    Questions are cut to the `max_question_length` of `settings`, and windows overlap by its
    `stride`, if it has them.
    """

    kind = ANSWERER

    def answer(self, question, context, null_answers=None, count=1):
        """Return the best `tfnlp.text.decoding.answers.Answer`s to a question, best first.

        Long contexts are split into windows.

        Args:
            question: a string.
            context: the text that holds the answer.
            null_answers: whether the context may hold no answer; where None, as in training by
                `settings`, else False.
            count: the number of answers, at least 1.
        """
        return self.answer_all([question], [context], null_answers, count)[0]

    def answer_all(self, questions, contexts, null_answers=None, count=1):
        """Return the answers to each question from its context, a list of lists.

        Args:
            questions, contexts: as many strings of each.
            null_answers, count: as in `answer`.
        """
        check_at_least(1, count=count)
        if null_answers is None:
            null_answers = self.settings.get("null_answers", False)
        windows = self.tokenizer.encode_windows(
            questions,
            contexts,
            self.max_length,
            stride=self.settings.get("stride", self.max_length // 4),
            max_question_length=self.settings.get("max_question_length", MAX_QUESTION_LENGTH),
        )
        outputs = self.backend.run(windows)
        logits = ([o[name] for o in outputs] for name in ("start_logits", "end_logits"))
        return best_answers(windows, *logits, as_texts(contexts), null_answers, count=count)

    def predict(self, texts, second_texts=None):
        """Return the best `Answer` to each question, `texts`, from its context."""
        return [answers[0] for answers in self.answer_all(texts, second_texts)]


class Scorer(Pipeline):
    """Text regression; reads the output `score`, (1,)."""

    kind = SCORER

    def score(self, texts, pairs=None):
        """Return the score of each text or pair, a list of floats, as in `Classifier.classify`."""
        self._check_pairs(pairs)
        encodings = self.tokenizer.encode(texts, pairs, max_length=self.max_length)
        return [float(outputs["score"][0]) for outputs in self.backend.run(encodings)]

    def predict(self, texts, second_texts=None):
        return self.score(texts, second_texts)


class Chooser(Pipeline):
    """Multiple choice; reads the output `score`, (1,), of a prompt with each ending."""

    kind = CHOOSER

    def choose(self, prompt, endings):
        """Return the `Choice` of the most probable ending of a prompt, from a list of strings."""
        return self.choose_all([prompt], [endings])[0]

    def choose_all(self, prompts, endings):
        """Return the `Choice` for each prompt.

        Args:
            prompts: a list of strings.
            endings: a list of strings for each prompt; their numbers may differ.

        Raises:
            InputError: if a prompt has no ending.
        """
        prompts = as_texts(prompts, "prompts")
        groups = [as_texts(group, f"endings[{i}]") for i, group in enumerate(endings)]
        if len(groups) != len(prompts) or not all(groups):
            raise InputError(
                f"There are {len(prompts)} prompts and {len(groups)} lists of endings; give each "
                "prompt a list of at least one."
            )
        repeated = [p for p, group in zip(prompts, groups, strict=True) for _ in group]
        flat = [ending for group in groups for ending in group]
        encodings = self.tokenizer.encode(repeated, flat, max_length=self.max_length)
        scores = np.array([outputs["score"][0] for outputs in self.backend.run(encodings)], float)
        choices, start = [], 0
        for group in groups:
            rows = slice(start, start + len(group))
            start = rows.stop
            probabilities = np.exp(scores[rows] - scores[rows].max())
            probabilities = (probabilities / probabilities.sum()).tolist()
            place = int(scores[rows].argmax())
            truncated = bool(encodings.truncated[rows].any())
            choices.append(Choice(place, group[place], probabilities, truncated))
        return choices

    def predict(self, texts, second_texts=None):
        """Return the `Choice` for each prompt, `texts`, from its list of endings."""
        return self.choose_all(texts, second_texts)


class Embedder(Pipeline):
    """Text embeddings; reads the output `embedding`, (D,), of length 1."""

    kind = EMBEDDER

    @property
    def query_prompt(self):
        """Name of the prompt of queries; "" for none, as sentence-transformers' encode_query."""
        return self._first_prompt("query")

    @property
    def text_prompt(self):
        """Name of the prompt of texts that are searched; "" for none, not even the default one."""
        return self._first_prompt(*DOCUMENT_PROMPTS)

    def _first_prompt(self, *names):
        return next((name for name in names if name in self.settings.get("prompts", {})), "")

    def embed(self, texts, pairs=None, prompt=None):
        """Return the embedding of each text, or pair of texts.

        The dot product of two embeddings is their cosine similarity.

        Args:
            texts, pairs: as in `Classifier.classify`.
            prompt: the name of one of the model's `prompts`, which texts begin with, such as
                "query", or "" for none; its `default_prompt`, if it has one, where None.

        Returns:
            A float32 array (texts, D) with rows of length 1; (0, 0) without texts.

        Raises:
            InputError: for an unknown prompt.
        """
        encodings = self.encode(texts, pairs, prompt)
        rows = [outputs["embedding"] for outputs in self.backend.run(encodings)]
        return np.array(rows, "float32") if rows else np.zeros((0, 0), "float32")

    def encode(self, texts, pairs=None, prompt=None):
        """Return the `Encodings` that `embed` runs, with its arguments."""
        prompt = self.settings.get("default_prompt") if prompt is None else prompt
        if prompt:
            prompts = self.settings.get("prompts", {})
            if prompt not in prompts:
                raise unknown_name("prompt", prompt, prompts)
            texts = [prompts[prompt] + text for text in as_texts(texts, "texts")]
        return self.tokenizer.encode(texts, pairs, max_length=self.max_length)

    def predict(self, texts, second_texts=None):
        return self.embed(texts, second_texts)


class TokenEmbedder(Embedder):
    """Embeddings of texts and of their tokens; reads `token_embeddings`, (L, D), too."""

    kind = TOKEN_EMBEDDER

    def embed_tokens(self, texts, prompt=None):
        """Return the vectors (L, D), each of length 1, of the tokens of each text.

        [CLS] and [SEP], or what the tokenizer has in their place, are tokens too.

        Args:
            texts, prompt: as in `embed`.

        Raises:
            InputError: for an unknown prompt.
        """
        encodings = self.encode(texts, prompt=prompt)
        rows = zip(encodings, self.backend.run(encodings), strict=True)
        return [outputs["token_embeddings"][: len(x.token_ids)] for x, outputs in rows]


_PIPELINES = (Classifier, MultiLabelClassifier, Tagger, Answerer, Scorer, Chooser, Embedder)
_PIPELINES += (TokenEmbedder,)
PIPELINES = {cls.kind.name: cls for cls in _PIPELINES}


def pipeline_of(backend):
    """Return the pipeline of a backend's task."""
    if str(backend.kind) not in PIPELINES:
        raise unknown_name("kind of the backend", str(backend.kind), PIPELINES)
    return PIPELINES[str(backend.kind)](backend)
