"""Linear classifiers of bags of words, with their scores, size and speed."""

import dataclasses
import pickle
import statistics
import time

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC

from tfnlp.baselines.bag_of_words import BagOfWords, make_vectorizer
from tfnlp.utils.errors import InputError, unknown_name
from tfnlp.utils.formatting import figure_name

CLASSIFIERS = ("naive_bayes", "logistic_regression", "linear_svm")
TIMED_TEXTS = 200


class LinearClassifier:
    """Linear classifier of a bag of words, of texts or pairs of texts.

    Naive Bayes is multinomial: p(c | d) is proportional to p(c) times the product of p(t | c)
    over the terms of d, where p(t | c) = (count(t, c) + smoothing) / (count(c) + smoothing V)
    (Manning et al. 2008, 'Introduction to Information Retrieval', section 13.2). Logistic
    regression and the linear support vector machine have an L2 penalty of weight 1 / `c`. A pair
    has the vectors of both texts and their product, whose entries are those of shared terms.

    Args:
        classifier: "naive_bayes", "logistic_regression" or "linear_svm".
        bag: a `BagOfWords`; the default one if None.
        smoothing: of naive Bayes; 0 for none.
        c: the inverse of the penalty's weight.

    Raises:
        InputError: for an unknown classifier, or naive Bayes of latent semantic analysis.
    """

    def __init__(self, classifier="logistic_regression", bag=None, smoothing=1.0, c=1.0):
        if classifier not in CLASSIFIERS:
            raise unknown_name("classifier", classifier, CLASSIFIERS)
        self.bag = bag or BagOfWords()
        if classifier == "naive_bayes" and self.bag.lsa_dim:
            raise InputError(
                f"lsa_dim={self.bag.lsa_dim} gives negative numbers, which naive_bayes cannot "
                "count; choose logistic_regression or linear_svm."
            )
        self.classifier = classifier
        self._vectorizer = make_vectorizer(self.bag)
        self._model = {
            "naive_bayes": lambda: MultinomialNB(alpha=smoothing, force_alpha=True),
            "logistic_regression": lambda: LogisticRegression(C=c, max_iter=1000),
            "linear_svm": lambda: LinearSVC(C=c),
        }[classifier]()

    def fit(self, texts, labels, pairs=None):
        """Fit on texts, a list, and their labels; `pairs` are the second texts, or None.

        Labels (texts, C) of 0 and 1 are independent of each other: each gets a classifier.

        Raises:
            InputError: if no text has a term.
        """
        try:
            if pairs is None:
                features = self._vectorizer.fit_transform(texts)  # splits each text but once
            else:
                self._vectorizer.fit([*texts, *pairs])
                features = self._features(texts, pairs)
        except ValueError as e:  # scikit-learn: "empty vocabulary"
            raise InputError(
                f"No {self.bag.unit} could be counted in the training texts: {e}."
            ) from None
        if np.ndim(labels) == 2:
            self._model = OneVsRestClassifier(self._model)
        self._model.fit(features, labels)
        models = getattr(self._model, "estimators_", [self._model])
        for part in (*models, *getattr(self._vectorizer, "named_steps", {}).values()):
            for name in {"components_", "feature_log_prob_"} & vars(part).keys():
                # Texts are multiplied by its transpose, which SciPy would copy for each of them.
                setattr(part, name, np.asfortranarray(getattr(part, name)))
        return self

    def predict(self, texts, pairs=None):
        """Return the label of each text, an array."""
        return self._model.predict(self._features(texts, pairs))

    def scores(self, texts, pairs=None):
        """Return (texts, classes): joint log-probabilities of naive Bayes, else margins.

        The joint log-probability of a class is log p(c) + sum of log p(t | c).
        """
        features = self._features(texts, pairs)
        if self.classifier == "naive_bayes":
            return self._model.predict_joint_log_proba(features)
        return self._model.decision_function(features)

    def _features(self, texts, pairs):
        first = self._vectorizer.transform(texts)
        if pairs is None:
            return first
        second = self._vectorizer.transform(pairs)
        return scipy.sparse.hstack([first, second, scipy.sparse.csr_array(first) * second])

    def size(self):
        """Return the bytes of the fitted vectorizer and classifier, pickled."""
        return len(pickle.dumps((self._vectorizer, self._model)))


@dataclasses.dataclass(frozen=True)
class Baseline:
    """Result of a baseline.

    Args:
        name: of unit and classifier.
        scores: {"dev_accuracy": ..., ...}.
        bytes: size of the pickled model.
        milliseconds: median time of one text by itself.
    """

    name: str
    scores: dict
    bytes: int
    milliseconds: float


def compare_baselines(task, splits, bags=None, classifiers=CLASSIFIERS):
    """Return a `Baseline` for each bag and classifier.

    Args:
        task: a `tfnlp.tasks.Classification`, or `MultiLabelClassification`.
        splits: {"train": Examples, "dev": ..., ...}; those of None are skipped.
        bags: a list of `BagOfWords`; the default one if None.
        classifiers: names among `CLASSIFIERS`.
    """
    train = splits["train"]
    rest = {name: split for name, split in splits.items() if name != "train" and split}
    results = []
    for bag in bags or [BagOfWords()]:
        for classifier in classifiers:
            model = LinearClassifier(classifier, bag).fit(
                train.texts, task.targets(train), train.pairs
            )
            scores = {
                figure_name(name, key): value
                for name, split in rest.items()
                for key, value in _score(task, model, split).items()
            }
            timed = next(iter(rest.values()), train)
            results.append(
                Baseline(
                    f"{bag.unit} {classifier}", scores, model.size(), time_texts(model, timed)
                )
            )
    return results


def _score(task, model, examples):
    ids = model.predict(examples.texts, examples.pairs)
    return task.score_predictions(examples, task.names_of(ids))


def linear_figures(task, splits):
    """Return {name: figure} of `compare_baselines`: a score, size and time.

    The score is the task's monitor, or the first of the task where that is of probabilities.
    """
    figures = {}
    for result in compare_baselines(task, splits):
        name = result.name.removeprefix("words ")
        for split in splits:
            if split != "train":
                of_labels = figure_name(split, task.monitor) in result.scores
                score = task.monitor if of_labels else task.scores[0]
                value = result.scores[figure_name(split, score)]
                figures[figure_name(split, f"{name}_{score}")] = value
        figures |= {f"{name}_bytes": result.bytes, f"{name}_ms": result.milliseconds}
    return figures


def time_texts(model, examples):
    """Return the median milliseconds of a text, each predicted by itself."""
    seconds = []
    for i in range(min(TIMED_TEXTS, len(examples))):
        pair = examples.pairs and [examples.pairs[i]]
        start = time.perf_counter()
        model.predict([examples.texts[i]], pair)
        seconds.append(time.perf_counter() - start)
    return 1000 * statistics.median(seconds)
