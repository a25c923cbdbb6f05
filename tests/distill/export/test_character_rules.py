"""Rules of how tokenizers read characters."""

from tokenizers import pre_tokenizers

from distill.export.character_rules import ranges, split_characters


def test_letters_between_punctuation_are_not_split():
    assert split_characters(pre_tokenizers.BertPreTokenizer(), ["!", "?", "a"]) == {"!", "?"}


def test_characters_are_named_by_their_ranges():
    assert ranges("Acb") == "U+0041, U+0062 to U+0063"
    assert ranges("acegikm") == "U+0061, U+0063, U+0065, U+0067, U+0069, U+006B and 1 more ranges"
