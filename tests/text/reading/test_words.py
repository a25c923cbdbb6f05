"""Words of a text, split as a training set's are."""

from tfnlp.tasks import read_tagged
from tfnlp.text.reading.words import WordSplitter

# As CoNLL's data has them: punctuation and clitics are words, but not within "U.S." and "@a".
SENTENCES = [
    ["(", "Anna", "'s", "film", ",", "isn", "'t", "dull", "!", ")"],
    ["The", "U.S.", "likes", "@anna", "."],
    ["Anna", "lives", "here", "."],
    ["@", "home", ",", "@you", "and", "@me"],
]


def words(splitter, text):
    return [text[start:end] for start, end in splitter.spans(text)]


def test_text_is_split_as_the_sentences_are():
    splitter = WordSplitter.from_sentences(SENTENCES)
    assert splitter.prefixes >= {"(", "!"} and "@" not in splitter.prefixes
    assert splitter.whole == {"U.S."}
    text = " (The U.S. film's \tdull, @anna!). "
    assert splitter.spans(text)[0] == (1, 2)
    first = ["(", "The", "U.S.", "film", "'s", "dull", ",", "@anna"]
    assert words(splitter, text) == [*first, "!", ")", "."]
    assert words(splitter, "") == words(splitter, " \n") == []
    assert words(splitter, ". .. a") == [".", ".", ".", "a"]
    again = WordSplitter.from_settings(splitter.settings())
    assert again == splitter


def test_sentences_without_parted_words_are_split_at_white_space_alone():
    splitter = WordSplitter.from_sentences([["Anna", "lives", "here."], ["정말", "재미있다."]])
    assert splitter == WordSplitter() == WordSplitter.from_settings(None)
    assert words(splitter, "(Anna lives) 영화다.") == ["(Anna", "lives)", "영화다."]


def test_the_longest_prefix_or_suffix_is_split_off():
    splitter = WordSplitter(frozenset(["(", "(("]), frozenset([".", "..."]))
    assert words(splitter, "((so... (it.") == ["((", "so", "...", "(", "it", "."]


def test_words_that_are_split_more_often_than_not_are_split():
    sentences = [["one", "."], ["one", "."], ["one."], ["two", "."], ["etc."]]
    splitter = WordSplitter.from_sentences(sentences)
    assert words(splitter, "one. two. etc.") == ["one", ".", "two", ".", "etc."]


def test_real_sentences_come_back(data_dir):
    train, dev = (read_tagged(data_dir / "wnut17" / f"{n}.conll") for n in ("train", "dev"))
    splitter = WordSplitter.from_sentences(train.sentences)
    back = [words(splitter, " ".join(sentence)) == sentence for sentence in dev.sentences]
    assert sum(back) > 0.98 * len(back)
    text = "I live in New York. (Anna's dog isn't here!)"
    first = ["I", "live", "in", "New", "York", ".", "(", "Anna", "'s", "dog", "isn't", "here"]
    assert words(splitter, text) == [*first, "!", ")"]
