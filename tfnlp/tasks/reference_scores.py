"""Scores of generated texts, such as translations, against references."""

import collections
import re

from tfnlp.text.reading.text_arguments import as_pairs
from tfnlp.utils.errors import InputError, needs_packages

ROUGE_KINDS = ("rouge1", "rouge2", "rougeL")


def word_overlap(references, hypotheses):
    """Return precision, recall and F1 of words regardless of position, over all texts together.

    Args:
        references: a list of strings; one string is one text.
        hypotheses: as many strings. A pair of two blank texts is ignored.

    Returns:
        A dict of `word_precision`, `word_recall` and `word_f1`, 0 where nothing was generated.
    """
    matched = hypothesis_words = reference_words = 0
    for reference, hypothesis in zip(*_pairs(references, hypotheses), strict=True):
        reference, hypothesis = reference.split(), hypothesis.split()
        matched += _matches(reference, hypothesis)
        hypothesis_words += len(hypothesis)
        reference_words += len(reference)
    return {
        "word_precision": matched / max(hypothesis_words, 1),
        "word_recall": matched / max(reference_words, 1),
        "word_f1": 2 * matched / max(hypothesis_words + reference_words, 1),
    }


def text_scores(references, hypotheses, tokenize="13a"):
    """Return BLEU, chrF, ROUGE and word overlap.

    Args:
        references, hypotheses: as in `word_overlap`.
        tokenize: sacrebleu's tokenizer for BLEU: "13a" as WMT does, "char" by characters, "none"
            at white space, "intl", "zh", "ja-mecab" or "ko-mecab".

    Returns:
        A dict of `bleu` and `chrf` (0 to 100, over all texts together, by sacrebleu), their
        `bleu_signature` and `chrf_signature`; `rouge1`, `rouge2` and `rougeL` (mean F of the
        texts, 0 to 1, by rouge-score, on lower-case words of any script); and the entries of
        `word_overlap`.

    Raises:
        InputError: if there are no texts or unequal numbers, a hypothesis has a blank reference,
            or sacrebleu lacks the tokenizer.
    """
    references, hypotheses = _pairs(references, hypotheses)
    sacrebleu, rouge_scorer = scoring_libraries()
    bleu = make_bleu(tokenize)
    chrf = sacrebleu.CHRF()
    rouge = rouge_scorer.RougeScorer(ROUGE_KINDS, tokenizer=_Words())
    totals = dict.fromkeys(ROUGE_KINDS, 0.0)
    for reference, hypothesis in zip(references, hypotheses, strict=True):
        for kind, score in rouge.score(reference, hypothesis).items():
            totals[kind] += score.fmeasure
    return {
        "bleu": bleu.corpus_score(hypotheses, [references]).score,
        "bleu_signature": str(bleu.get_signature()),
        "chrf": chrf.corpus_score(hypotheses, [references]).score,
        "chrf_signature": str(chrf.get_signature()),
        **{kind: total / len(references) for kind, total in totals.items()},
        **word_overlap(references, hypotheses),
    }


class _Words:
    """Tokenizer for rouge-score, whose own keeps only the letters a to z, and so no Korean."""

    def tokenize(self, text):
        return re.findall(r"\w+", text.lower())


def _pairs(references, hypotheses):
    """Return the references and hypotheses to score, without pairs with a blank reference."""
    references, hypotheses = as_pairs(references, hypotheses, ("references", "hypotheses"))
    kept = [i for i, reference in enumerate(references) if reference.strip()]
    for i in {i for i, hypothesis in enumerate(hypotheses) if hypothesis.strip()}.difference(kept):
        raise InputError(
            f"Reference {i + 1} is empty, but its hypothesis is not; give the correct text."
        )
    if not kept:
        raise InputError("There is no text to score; give at least one.")
    return [references[i] for i in kept], [hypotheses[i] for i in kept]


def _matches(reference, hypothesis):
    return (collections.Counter(reference) & collections.Counter(hypothesis)).total()


def make_bleu(tokenize):
    """Return sacrebleu's `BLEU`.

    Raises:
        InputError: if sacrebleu lacks the tokenizer, or a package is not installed.
    """
    sacrebleu, _ = scoring_libraries()
    try:
        return sacrebleu.BLEU(tokenize=tokenize)
    except (KeyError, RuntimeError, ImportError) as e:
        why = " ".join(str(e).split())
        raise InputError(
            f"sacrebleu cannot use tokenize={tokenize!r} ({why}); use '13a' or 'char'."
        ) from None


def scoring_libraries():
    """Return sacrebleu and the `rouge_scorer` module.

    Raises:
        InputError: if they are not installed.
    """
    with needs_packages("Scoring texts", "rouge-score sacrebleu"):
        import sacrebleu
        from rouge_score import rouge_scorer
    return sacrebleu, rouge_scorer
