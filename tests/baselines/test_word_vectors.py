import numpy as np
import pytest

from tfnlp.baselines import WordVectors
from tfnlp.utils.errors import InputError

models = pytest.importorskip("gensim.models")
RNG = np.random.default_rng(0)
WORDS = ["king", "queen", "man", "woman", "영화", "film", "river"]
VECTORS = WordVectors(WORDS, RNG.normal(size=(7, 5)))


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.bin"])
def test_files_are_exchanged_with_gensim(name, tmp_path):
    binary = name.endswith(".bin")
    VECTORS.save(tmp_path / name)
    read = models.KeyedVectors.load_word2vec_format(str(tmp_path / name), binary=binary)
    assert read.index_to_key == WORDS
    np.testing.assert_array_equal(read.vectors, VECTORS.vectors)
    read.save_word2vec_format(str(tmp_path / f"their_{name}"), binary=binary)
    again = WordVectors.load(tmp_path / f"their_{name}")
    assert again.words == WORDS
    np.testing.assert_array_equal(again.vectors, VECTORS.vectors)


def test_neighbours_and_analogies_equal_those_of_gensim(tmp_path):
    VECTORS.save(tmp_path / "vectors.txt")
    keyed = models.KeyedVectors.load_word2vec_format(str(tmp_path / "vectors.txt"))
    for word in WORDS:
        for (ours, cosine), (theirs, expected) in zip(
            VECTORS.nearest(word, 6), keyed.most_similar(word, topn=6), strict=True
        ):
            assert ours == theirs and cosine == pytest.approx(expected, abs=1e-6)
    positive, negative = ["king", "woman"], ["man"]
    for multiply, theirs in ((False, keyed.most_similar), (True, keyed.most_similar_cosmul)):
        words, scores = zip(*VECTORS.analogy(positive, negative, 4, multiply), strict=True)
        expected = theirs(positive, negative, topn=4)
        assert [*words] == [word for word, _ in expected]
        np.testing.assert_allclose(scores, [s for _, s in expected], rtol=1e-5, atol=1e-6)
    assert len(VECTORS.analogy(["king", "king"], ["man"], 9)) == 5  # all but the two
    for words in (WORDS[:4], WORDS[2:6], WORDS):
        assert VECTORS.odd_one_out(words) == keyed.doesnt_match(words)
    assert VECTORS.similarity("king", "영화") == pytest.approx(keyed.similarity("king", "영화"))


def test_glove_files_have_no_header(tmp_path):
    (tmp_path / "glove.txt").write_text("film 1 2\n. . 3 4\n")
    vectors = WordVectors.load(tmp_path / "glove.txt")
    assert vectors.words == ["film", ". ."]
    np.testing.assert_array_equal(vectors["film"], [1, 2])
    assert "river" not in vectors and len(vectors) == 2


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.txt", b"film 1 2\nriver 1\n", "line 2: expected a word and 2 numbers"),
        ("a.txt", b"film 1 nan\n", "line 1: expected a word and 2 numbers"),
        ("a.bin", b"film\n", "begins with b'film', .*invalid literal"),
        ("a.txt", b"3 1\nfilm 1\nriver 2\n", "holds 2 vectors, but its header says 3"),
        ("a.bin", b"2 2\nfilm \0\0\0\0\0\0\0\0riv", "begins with b'2 2', .*subsection not found"),
        ("a.bin", b"1 0\na ", "begins with b'1 0', .*0 columns"),
        ("a.bin", b"2 1\na \0\0\0\0\xff\0\0\0b " + bytes(8), "can't decode byte"),
        ("a.bin", b"1 1\na " + bytes(8), "begins with b'1 1', .*4 bytes follow"),
    ],
)
def test_broken_files(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        WordVectors.load(tmp_path / name)


def test_of_two_words_that_are_the_same_the_first_counts():
    np.testing.assert_array_equal(WordVectors(["a", "a"], [[1, 2], [3, 4]])["a"], [1, 2])


def test_a_word_with_a_space_is_not_written(tmp_path):
    with pytest.raises(InputError, match="The word 'a b' has a space"):
        WordVectors(["a", "a b"], [[1, 2], [3, 4]]).save(tmp_path / "vectors.bin")
