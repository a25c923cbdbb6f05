import numpy as np

from benchmarks.pooled_labels import geometric_mean, linear_log_probabilities


def test_probabilities_of_models_are_pooled():
    """The roots of 0.8 x 0.5 and 0.2 x 0.5 are as 2 to 1."""
    pooled = np.exp(geometric_mean(np.log([[[0.8, 0.2]], [[0.5, 0.5]]])))
    np.testing.assert_allclose(pooled, [[2 / 3, 1 / 3]], rtol=1e-6)


def test_linear_classifiers_give_the_probability_of_each_label():
    train = [{"sentence": "good", "label": "1"}, {"sentence": "bad", "label": "0"}]
    for name in ("words/naive_bayes", "words/logistic_regression"):
        values = np.exp(linear_log_probabilities(name, ["0", "1"], train, ["good", "bad", "so"]))
        np.testing.assert_allclose(values.sum(-1), 1, rtol=1e-6)
        assert values[0, 1] > 0.5 > values[1, 1]
        np.testing.assert_allclose(values[2], 0.5, atol=1e-6)  # of an unknown word
