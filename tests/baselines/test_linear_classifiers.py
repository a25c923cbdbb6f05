import numpy as np
import pytest

from tfnlp.baselines import CLASSIFIERS, BagOfWords, LinearClassifier, compare_baselines
from tfnlp.tasks import Classification
from tfnlp.text import Examples
from tfnlp.utils.errors import InputError

VISION = [
    "Image recognition uses convolutional neural networks",
    "Transformer can be use for image classification task",
]
LANGUAGE = ["Language modeling uses transformer", "Document classification task is language task"]
WORDS = BagOfWords(weighting="counts", max_ngram=1)


def test_naive_bayes_of_the_worked_example():
    texts, labels = VISION + LANGUAGE, [0, 0, 1, 1]
    model = LinearClassifier("naive_bayes", WORDS, smoothing=0).fit(texts, labels)
    scores = np.exp(model.scores(["Classification task uses transformer"]))[0]
    assert scores[0] == pytest.approx(1 / 2 * (1 / 14) ** 4)
    assert scores[1] == pytest.approx(1 / 2 * (1 / 10) * (2 / 10) * (1 / 10) * (1 / 10))
    assert model.predict(["Classification task uses transformer"]) == [1]
    # With smoothing each of the 17 distinct words has one more occurrence in each class.
    smoothed = LinearClassifier("naive_bayes", WORDS).fit(texts, labels)
    expected = 1 / 2 * (2 / 27) * (3 / 27) * (2 / 27) * (2 / 27)
    assert len({word for text in texts for word in text.lower().split()}) == 17
    found = np.exp(smoothed.scores(["Classification task uses transformer"]))
    assert found[0, 1] == pytest.approx(expected)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_pairs_are_told_apart_by_what_they_share(classifier):
    rng = np.random.default_rng(0)
    words = np.array(["film", "plot", "cast", "song", "book", "town"])
    texts, pairs, labels = [], [], []
    for _ in range(200):
        a, b = rng.choice(len(words), 2, replace=False)
        same = int(rng.integers(2))
        texts.append(f"{words[a]} x")
        pairs.append(f"{words[a if same else b]} y")
        labels.append(same)
    model = LinearClassifier(classifier, WORDS).fit(texts[:150], labels[:150], pairs[:150])
    right = np.mean(model.predict(texts[150:], pairs[150:]) == labels[150:])
    assert right > 0.9  # chance is 0.5
    assert model.size() > 100


@pytest.mark.parametrize("classifier", ["logistic_regression", "linear_svm"])
def test_margins_grow_with_the_inverse_of_the_penalty(classifier):
    texts, labels = VISION + LANGUAGE, [0, 0, 1, 1]
    small, large = (
        np.abs(LinearClassifier(classifier, WORDS, c=c).fit(texts, labels).scores(texts))
        for c in (0.01, 10)
    )
    assert (2 * small < large).all()


def test_baselines_beside_each_other():
    train = Examples(["good film", "bad film", "good plot", "bad plot"], None, [1, 0, 1, 0])
    dev = Examples(["good", "bad", "good bad"], None, [1, 0, 1])
    task = Classification(["negative", "positive"])
    splits = {"train": train, "dev": dev, "test": None}
    results = compare_baselines(task, splits, [WORDS], ["naive_bayes", "linear_svm"])
    assert [r.name for r in results] == ["words naive_bayes", "words linear_svm"]
    for result in results:
        assert result.scores["dev_accuracy"] >= 2 / 3
        assert {"dev_accuracy", "dev_matthews", "dev_macro_f1"} == {*result.scores}
        assert result.bytes > 0 and result.milliseconds > 0


def test_bad_input():
    with pytest.raises(InputError, match="classifier"):
        LinearClassifier("forest")
    with pytest.raises(InputError, match="lsa_dim=2 gives negative numbers"):
        LinearClassifier("naive_bayes", BagOfWords(lsa_dim=2))
    with pytest.raises(InputError, match="No words could be counted"):
        LinearClassifier().fit(["...", "!"], [0, 1])
