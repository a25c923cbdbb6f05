import pytest
import sacrebleu

from tfnlp.tasks.reference_scores import text_scores, word_overlap
from tfnlp.utils.errors import InputError

# A worked example of the literature on machine translation.
REFERENCE = "Half of my heart is in Havana ooh na na"
HYPOTHESIS = "Half as my heart is in Obama ooh na"


def test_words_match_regardless_of_position():
    found = word_overlap([REFERENCE], [HYPOTHESIS])
    assert found["word_precision"] == 7 / 9
    assert found["word_recall"] == 7 / 10
    assert found["word_f1"] == pytest.approx(0.737, abs=5e-4)
    assert word_overlap([REFERENCE], [" ".join(reversed(HYPOTHESIS.split()))]) == found
    # A word counts as often as the reference has it.
    assert word_overlap(["a b"], ["a a a a"])["word_precision"] == 1 / 4


def test_scores_of_a_corpus_are_those_of_sacrebleu():
    references = [REFERENCE, "a man in an orange hat", "zwei Hunde spielen im Schnee ."]
    hypotheses = [HYPOTHESIS, "a man with an orange hat", ""]
    scores = text_scores(references, hypotheses)
    assert scores["bleu"] == sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert scores["chrf"] == sacrebleu.corpus_chrf(hypotheses, [references]).score
    assert "tok:13a" in scores["bleu_signature"] and "nc:6" in scores["chrf_signature"]
    # rouge1 by hand: F of 7/9 and 7/10, of 5/6 and 5/6, and 0 for what was not written.
    first = 2 * 7 / 19
    assert scores["rouge1"] == pytest.approx((first + 5 / 6 + 0) / 3, abs=1e-9)
    # Longest common subsequences: Half my heart is in ooh na; a man an orange hat.
    assert scores["rougeL"] == pytest.approx((first + 5 / 6) / 3, abs=1e-9)
    assert scores["rouge2"] == pytest.approx((2 * 4 / 17 + 3 / 5) / 3, abs=1e-9)


def test_korean_words_count_for_rouge():
    scores = text_scores(["이 영화 정말 재미있다"], ["이 영화 재미있다"])
    assert scores["rouge1"] == pytest.approx(6 / 7, abs=1e-9)
    by_characters = text_scores(["이 영화 정말 재미있다"], ["이 영화 재미있다"], tokenize="char")
    assert by_characters["bleu"] > scores["bleu"] + 10
    assert "tok:char" in by_characters["bleu_signature"]


def test_a_string_is_one_text_and_two_blank_ones_count_nothing():
    texts = [REFERENCE, "", "a b c d"], [HYPOTHESIS, " ", "a b c e"]
    expected = text_scores(texts[0][::2], texts[1][::2])
    assert text_scores(*texts) == expected and expected["rouge1"] > 0.7
    assert text_scores(REFERENCE, HYPOTHESIS) == text_scores([REFERENCE], [HYPOTHESIS])
    assert word_overlap("abc", "abd")["word_f1"] == 0


@pytest.mark.parametrize(
    ("scores", "references", "hypotheses", "options", "message"),
    [
        (text_scores, ["a", "b"], ["a"], {}, "hypotheses holds 1 texts and references 2"),
        (text_scores, [], [], {}, "no text to score"),
        (word_overlap, ["a", " "], ["a", "b"], {}, "Reference 2 is empty"),
        (text_scores, ["", " "], ["", ""], {}, "no text to score"),
        (text_scores, ["a", "b"], ["a", None], {}, r"hypotheses\[1\] is None"),
        (text_scores, ["a"], ["a"], {"tokenize": "words"}, "tokenize='words'"),
    ],
)
def test_unfit_texts_are_refused(scores, references, hypotheses, options, message):
    with pytest.raises(InputError, match=message):
        scores(references, hypotheses, **options)
