import numpy as np
import pytest

from tfnlp.baselines import BagOfWords, NearestSpelling, make_vectorizer
from tfnlp.baselines.korean_morphemes import morphemes
from tfnlp.utils.errors import InputError

CARS = ["a new car, used car, car review", "a friend in need is a friend indeed"]


def weights(smooth_idf):
    vectorizer = make_vectorizer(BagOfWords(max_ngram=1, smooth_idf=smooth_idf))
    rows = vectorizer.fit_transform(CARS).toarray()
    return [dict(zip(vectorizer.get_feature_names_out(), row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    "smooth_idf, once, both", [(True, np.log(3 / 2) + 1, 1.0), (False, np.log(2) + 1, 1.0)]
)
def test_tfidf_by_hand(smooth_idf, once, both):
    cars, friends = weights(smooth_idf)
    # The first: a, new, car x 3, used, review; the second: a x 2, friend x 2 and 4 others.
    norm = np.sqrt(both**2 + (1 + 9 + 1 + 1) * once**2)
    assert cars["car"] == pytest.approx(3 * once / norm)
    assert cars["a"] == pytest.approx(both / norm)
    norm = np.sqrt((2 * both) ** 2 + (4 + 1 + 1 + 1 + 1) * once**2)
    assert friends["friend"] == pytest.approx(2 * once / norm)
    assert friends["a"] == pytest.approx(2 * both / norm)
    assert friends["car"] == 0


def test_ngrams_of_words_and_of_characters():
    words = make_vectorizer(BagOfWords(weighting="counts", max_ngram=2)).fit(["not a good film"])
    assert {"not", "a", "not a", "good film"} <= {*words.get_feature_names_out()}
    settings = BagOfWords(unit="characters", weighting="counts", min_ngram=2, max_ngram=2)
    letters = make_vectorizer(settings).fit(["qual"])
    assert {*letters.get_feature_names_out()} == {" q", "qu", "ua", "al", "l "}


def test_lsa_is_the_truncated_svd_of_unit_rows():
    texts = ["a fine film", "a fine plot", "dull and slow", "slow plot"]
    tfidf = make_vectorizer(BagOfWords(max_ngram=1)).fit_transform(texts).toarray()
    rows = make_vectorizer(BagOfWords(max_ngram=1, lsa_dim=2)).fit_transform(texts)
    u, s, _ = np.linalg.svd(tfidf)
    expected = u[:, :2] * s[:2]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    # Singular vectors are known up to their sign: cosines are not.
    np.testing.assert_allclose(rows @ rows.T, expected @ expected.T, atol=1e-6)


def test_korean_morphemes_and_single_syllables():
    pytest.importorskip("kiwipiepy")
    bag = BagOfWords(unit="morphemes", weighting="counts", max_ngram=1)
    names = make_vectorizer(bag).fit(["이 영화 정말 재미있었어요"]).get_feature_names_out()
    assert {"이", "영화", "재미있", "었"} <= {*names}
    assert {"조니", "뎁"} <= {*morphemes("조니 뎁 주연의 영화")}  # kiwipiepy has them as one
    words = make_vectorizer(BagOfWords(max_ngram=1)).fit(["이 영화"]).get_feature_names_out()
    assert {*words} == {"이", "영화"}


def test_the_nearest_spelling():
    search = NearestSpelling(["equal", "quarrel", "qual", "quail", "dual", "wool"])
    (word, similarity), (second, _) = search.nearest("qwal", 2)
    assert word == "qual" and 0 < similarity < 1 and second != word
    assert search.nearest("qual")[0] == ("qual", pytest.approx(1))
    assert NearestSpelling(["영화관", "음악"]).nearest("영하관")[0][0] == "영화관"


def test_settings_out_of_bounds():
    with pytest.raises(InputError, match="max_ngram=1 must be at least min_ngram=2"):
        BagOfWords(min_ngram=2, max_ngram=1)
    with pytest.raises(InputError, match="unit"):
        BagOfWords(unit="letters")
