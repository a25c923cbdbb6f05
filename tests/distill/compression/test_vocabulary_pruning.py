"""Pruned vocabularies: the same tokens, outputs and files, with fewer rows."""

import dataclasses

import numpy as np
import pytest

from distill.compression import vocabulary_pruning
from distill.compression.token_selection import tokens_to_keep
from distill.compression.vocabulary_pruning import (
    compare_models,
    compare_tokenizers,
    prune_vocabulary,
    task_texts,
)
from tfnlp.checkpoints import load_model, save_model
from tfnlp.models import (
    AlbertConfig,
    BagConfig,
    BertConfig,
    DebertaV2Config,
    ElectraConfig,
    Gpt2Config,
    RobertaConfig,
    TransformerConfig,
    TransformerXLConfig,
    XlmRobertaConfig,
    XLNetConfig,
    build_model,
)
from tfnlp.tasks.multiple_choice import Choices
from tfnlp.tasks.question_answering import Questions
from tfnlp.tasks.tagged_files import TaggedSentences
from tfnlp.text import Examples, UnigramTokenizer, WordPieceTokenizer, load_tokenizer
from tfnlp.text.tokenizers.marian import MarianTokenizer
from tfnlp.text.tokenizers.special_tokens import SPECIAL_TOKENS
from tfnlp.utils.errors import InputError

SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 24}
SIZES |= {"initializer_range": 0.3}
# The kind of tokenizer and its family, the config, the head, whether the output is tied.
CASES = {
    "bert": ("wordpiece", None, BertConfig, "masked_lm", True),
    "electra": ("wordpiece", None, ElectraConfig, "tagger", True),
    "roberta": ("bpe", "roberta", RobertaConfig, "masked_lm", True),
    "gpt2": ("bpe", "gpt2", Gpt2Config, "causal_lm", True),
    "albert": ("unigram", "albert", AlbertConfig, "masked_lm", True),
    "xlnet": ("unigram", "xlnet", XLNetConfig, "classifier", True),
    "deberta-v2": ("unigram", "deberta-v2", DebertaV2Config, "masked_lm", False),
    "xlm-roberta": ("unigram", "xlm-roberta", XlmRobertaConfig, "masked_lm", True),
}


def outputs(model, tokenizer, texts):
    return {k: np.asarray(v) for k, v in model(tokenizer(texts)).items()}


@pytest.mark.parametrize("case", CASES)
def test_outputs_on_the_corpus_stay_the_same(case, texts, tokenizers, tmp_path):
    kind, family, config, head, tied = CASES[case]
    tokenizer, corpus = tokenizers[kind, family], texts[:40]
    fields = {"pad_token_id": tokenizer.pad_token_id} if case != "gpt2" else {}
    config = config(
        vocabulary_size=tokenizer.vocabulary_size, tie_embeddings=tied, **SIZES, **fields
    )
    model = build_model(config, head, 3)
    for weight in model.weights:  # biases too are of their tokens
        weight.assign(np.random.default_rng(0).normal(size=weight.shape) * 0.1)
    smaller, pruned = prune_vocabulary(model, tokenizer, corpus)
    kept = tokens_to_keep(tokenizer, corpus, required={config.pad_token_id})
    assert pruned.vocabulary_size == smaller.text_config.vocabulary_size == len(kept)
    assert len(kept) < tokenizer.vocabulary_size
    report = compare_tokenizers(tokenizer, pruned, corpus)
    assert report["texts_with_other_tokens"] == (0.0,)
    assert report["unknown_share"][0] == report["unknown_share"][1]
    for old, new in zip(tokenizer.encode(corpus), pruned.encode(corpus), strict=True):
        assert old.token_ids == [kept[i] for i in new.token_ids]
    expected = outputs(model, tokenizer, corpus[:8])
    if head.endswith("lm"):  # a logit for each token that is left
        expected["logits"] = expected["logits"][..., kept]
    save_model(smaller, tmp_path, None, pruned)
    loaded = load_model(tmp_path, head, None if head.endswith("lm") else 3)
    for one, tokens in ((smaller, pruned), (loaded, load_tokenizer(tmp_path))):
        found = outputs(one, tokens, corpus[:8])
        assert found.keys() == expected.keys()
        for key, value in found.items():
            np.testing.assert_allclose(value, expected[key], rtol=1e-6, atol=4e-6, err_msg=key)
    sizes = compare_models(model, smaller)
    gone = tokenizer.vocabulary_size - len(kept)
    rows = config.embedding_dim if case in ("electra", "albert") else 16
    tables = 1 + (not tied)
    biases = head == "masked_lm"
    assert sizes["parameters"][0] - sizes["parameters"][1] == gone * (rows * tables + biases)


def test_the_ids_of_a_translator_move_with_their_tokens():
    tokenizer = WordPieceTokenizer(
        ["unused", "film", "[UNK]", "[MASK]", "[SEP]", "[CLS]", "[PAD]", "x"]
    )
    ids = {"pad_token_id": 6, "start_token_id": 5, "end_token_id": 7}
    config = TransformerConfig(vocabulary_size=8, **ids, **SIZES)
    model = build_model(config, "sequence_to_sequence")
    smaller, pruned = prune_vocabulary(model, tokenizer, ["film"])
    new = pruned.tokens_by_id()
    assert new == ["film", "[UNK]", "[MASK]", "[SEP]", "[CLS]", "[PAD]", "x"]
    assert {name: getattr(smaller.text_config, name) for name in ids} == {
        "pad_token_id": 5,
        "start_token_id": 4,
        "end_token_id": 6,
    }
    two = dataclasses.replace(config, share_embeddings=False, target_vocabulary_size=9)
    with pytest.raises(InputError, match="of two vocabularies, and so cannot be pruned"):
        prune_vocabulary(build_model(two, "sequence_to_sequence"), tokenizer, ["film"])
    with pytest.raises(InputError, match="tokens of a MarianTokenizer cannot be pruned"):
        prune_vocabulary(model, object.__new__(MarianTokenizer), ["film"])


@pytest.mark.parametrize(("kind", "keep"), [("wordpiece", 150), ("bpe", 300), ("unigram", 150)])
def test_the_most_frequent_tokens_stay_and_other_texts_can_be_read(kind, keep, texts, tokenizers):
    tokenizer = next(t for (k, _), t in tokenizers.items() if k == kind)
    config = BertConfig(vocabulary_size=tokenizer.vocabulary_size, **SIZES)
    model = build_model(config, "classifier", 2)
    smaller, pruned = prune_vocabulary(model, tokenizer, texts[:40], keep)
    assert pruned.vocabulary_size == smaller.text_config.vocabulary_size == keep
    report = compare_tokenizers(tokenizer, pruned, texts)
    assert report["tokens"] == (tokenizer.vocabulary_size, keep)
    assert report["unknown_share"][1] < 0.05
    assert report["tokens_a_word"][1] > report["tokens_a_word"][0]
    assert 0 < report["texts_with_other_tokens"][0] <= 1
    # Room for more keeps all tokens of the corpus.
    every_token = tokens_to_keep(tokenizer, texts[:40])
    assert tokens_to_keep(tokenizer, texts[:40], 10_000) == every_token


def test_several_models_keep_the_same_tokens_which_are_counted_once(
    texts, tokenizers, monkeypatch
):
    tokenizer, counted = tokenizers["wordpiece", None], []
    size = tokenizer.vocabulary_size
    models = [build_model(kind(size, **SIZES)) for kind in (BertConfig, RobertaConfig, BertConfig)]
    count = tokens_to_keep

    def counting(*given):
        counted.append(1)
        return count(*given)

    monkeypatch.setattr(vocabulary_pruning, "tokens_to_keep", counting)
    smaller, pruned = vocabulary_pruning.prune_vocabularies(models, tokenizer, texts, 120)
    assert counted == [1]
    assert [model.text_config.vocabulary_size for model in smaller] == [120] * 3
    assert pruned.vocabulary_size == 120
    rows = [tokenizer.token_id(pruned.token(i)) for i in range(120)]
    for model, own in zip(models, smaller, strict=True):
        tables = [m.get_layer("embeddings").token_table.numpy() for m in (model, own)]
        np.testing.assert_array_equal(tables[1], tables[0][rows])


def test_an_unknown_word_stays_unknown():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "x", "##x", "y", "xy", "##yz"]
    tokenizer = WordPieceTokenizer(tokens)
    # Greedily "xyz" begins with "xy", which nothing follows; without it would be x ##yz.
    corpus = ["xyz", "x yyz"]
    assert tokenizer.tokens("xyz") == ["[UNK]"]
    kept = tokens_to_keep(tokenizer, corpus)
    model = build_model(BertConfig(vocabulary_size=len(tokens), **SIZES))
    _, pruned = prune_vocabulary(model, tokenizer, corpus)
    assert tokens.index("xy") in kept
    assert pruned.tokens("xyz") == ["[UNK]"]


def test_a_pair_of_bytes_goes_with_what_is_made_from_it(texts, tokenizers):
    tokenizer = tokenizers["bpe", "roberta"]
    model = build_model(RobertaConfig(vocabulary_size=tokenizer.vocabulary_size, **SIZES))
    for keep in (270, 300, 350):
        _, pruned = prune_vocabulary(model, tokenizer, texts[:40], keep)
        assert pruned.vocabulary_size <= keep
        for i in range(pruned.vocabulary_size):  # each token can still be made
            text = pruned.decode([i])
            if text and not text.startswith("�"):
                assert pruned.decode(pruned.encode([text])[0].token_ids) == text
        assert [pruned.decode(e.token_ids) for e in pruned.encode(texts)] == texts


def test_clustered_tokens_and_n_grams_are_refused(texts, tokenizers):
    tokenizer = tokenizers["wordpiece", None]
    size = tokenizer.vocabulary_size
    clustered = TransformerXLConfig(size, max_length=None, cutoffs=(9,), **SIZES)
    for config, word in ((clustered, "clustered"), (BagConfig(size, 4, word_ngrams=2), "word_ng")):
        with pytest.raises(InputError, match=word):
            prune_vocabulary(build_model(config, "classifier", 2), tokenizer, texts)


def test_texts_of_every_kind_of_examples():
    assert task_texts(Examples(["a"], ["b"])) == ["a", "b"]
    questions = Questions(["1", "2"], ["q", "r"], ["c", "c"], [[], []])
    assert task_texts(questions) == ["q", "r", "c"]
    assert task_texts(Choices(["p"], [["x", "y"]])) == ["p", "x", "y"]
    assert task_texts(TaggedSentences([["a", "b"], "cd"])) == [" a b", "cd"]


def test_a_token_that_becomes_unknown_is_another():
    tokens = dict.fromkeys(
        ["<unk>", *SPECIAL_TOKENS["xlnet"].tokens.values(), "▁", "a", "b"], -1.0
    )
    pieces = [*tokens.items()]
    smaller = UnigramTokenizer(pieces[:-1], "xlnet")
    report = compare_tokenizers(UnigramTokenizer(pieces, "xlnet"), smaller, ["a", "b"])
    assert report["texts_with_other_tokens"] == (0.5,)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
def test_texts_of_the_scripts_that_stay_are_the_same_tokens(kind, texts, tokenizers):
    tokenizer = next(t for (k, _), t in tokenizers.items() if k == kind)
    latin = [text for text in texts if text.isascii()]
    kept = tokens_to_keep(tokenizer, scripts=["Latin"])
    assert {*tokenizer.encode(latin).token_ids} <= {*kept} and len(kept) < 500
    both = tokens_to_keep(tokenizer, scripts=["Latin", "Hangul"])
    assert both == [*range(tokenizer.vocabulary_size)]
    count = tokenizer.vocabulary_size - 40
    first = tokens_to_keep(tokenizer, keep_tokens=count)
    assert len(first) == count and {*range(count // 2)} <= {*first}


def test_pieces_of_a_bert_pruned_to_a_script_are_split_as_before(data_dir):
    """With the rules of the folder's tokenizer.json, on NSMC's dev texts."""
    tokenizer = load_tokenizer(data_dir / "e5_small_ko_en")
    sizes = {"vocabulary_size": tokenizer.vocabulary_size, "pad_token_id": 1}
    model = build_model(BertConfig(**sizes | SIZES))
    lines = (data_dir / "nsmc" / "dev.tsv").read_text(encoding="utf-8").split("\n")[1:]
    korean = [text for text in (line.partition("\t")[0] for line in lines) if text]
    hangul = [t for t in korean if not any(c.isalpha() and not "가" <= c <= "힣" for c in t)]
    for corpus, texts, scripts in ((korean, korean, ()), (None, hangul, ["Hangul"])):
        smaller, pruned = prune_vocabulary(model, tokenizer, corpus, scripts=scripts)
        assert compare_tokenizers(tokenizer, pruned, texts)["texts_with_other_tokens"] == (0.0,)
        ids = [pruned.token_id(t) for t in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")]
        assert ids == [0, 1, 2, 3, pruned.vocabulary_size - 1]
        assert smaller.text_config.vocabulary_size == pruned.vocabulary_size < 20_000
