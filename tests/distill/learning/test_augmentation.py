"""Words are replaced, and texts continued, as the paper's loops do it; files of them resume."""

import dataclasses
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from distill.learning import augmentation_file
from distill.learning.augmentation import (
    ContinuationConfig,
    ReplacementConfig,
    TextContinuer,
    WordReplacer,
    WordVectors,
    whole_words,
)
from distill.learning.augmentation_file import augment_file, labels_in_file
from tests.grammar_corpus import make_reviews
from tfnlp.models import Gpt2Config, build_model
from tfnlp.text import read_examples
from tfnlp.text.tokenizer_loading import train_tokenizer
from tfnlp.utils.errors import InputError

# In pieces: unbelievable, films, 지루하다; capitals, marks, numbers and what nobody knows.
TEXTS = [
    "the film is not dull , it is unbelievable !",
    "정말 지루하다 . 영화 좋다",
    "Films are FINE 1930s x",
    "",
    "plot",
]


@pytest.fixture(scope="module")
def masked_lm(tiny_config):
    keras.utils.set_random_seed(0)
    return build_model(dataclasses.replace(tiny_config, num_layers=1), "masked_lm")


def scores_of(model):
    """A function from the ids of one text to the logits (L, V); its graph is traced once."""
    keys = ("token_ids", "segment_ids", "padding_mask")

    @tf.function(input_signature=[tf.TensorSpec((1, None), "int32")])
    def run(ids):
        return model(dict(zip(keys, (ids, 0 * ids, 0 * ids + 1), strict=True)))["logits"]

    return lambda ids: run(np.array([ids], "int32")).numpy()[0]


def slow_copies(model, tokenizer, texts, config):
    """Algorithm 1, a word at a time."""
    words = {i: t for i, t in enumerate(tokenizer.vocabulary) if t.isalpha()}
    table = model.get_layer("embeddings").token_table.numpy()
    mask, score, found = tokenizer.vocabulary.index("[MASK]"), scores_of(model), []
    for number, text in enumerate(texts):
        places = [m.span() for m in re.finditer(r"\w+", text) if m.group().isalpha()]
        candidates = []
        for start, end in places:
            word = text[start:end]
            pieces = [tokenizer.vocabulary.index(t) for t in tokenizer.tokens(word)]
            if len(pieces) == 1:
                before = tokenizer.tokens(text[:start])
                ids = [2, *map(tokenizer.vocabulary.index, tokenizer.tokens(text)), 3]
                ids[1 + len(before)] = mask
                scores = score(ids)[1 + len(before)]
            else:
                vector = table[pieces].mean(0)
                scores = table @ vector / np.linalg.norm(vector) / np.linalg.norm(table, axis=1)
            best = sorted(words, key=lambda i: -scores[i])
            best = [words[i] for i in best if words[i] != word.lower()]
            candidates.append(sorted(best[: config.candidates]))
        rng = np.random.default_rng([config.seed, number])
        shape = (config.copies, len(places))
        replaced, draws = rng.random(shape) <= config.probability, rng.random(shape)
        copies = []
        for copy in range(config.copies):
            changed = text
            for i in reversed(range(len(places))):
                start, end = places[i]
                if replaced[copy, i]:
                    word = candidates[i][int(draws[copy, i] * len(candidates[i]))]
                    if text[start:end].isupper() and end - start > 1:
                        word = word.upper()
                    elif text[start].isupper():
                        word = word.capitalize()
                    changed = changed[:start] + word + changed[end:]
            copies.append(changed)
        found.append(copies)
    return found


@pytest.mark.quick
def test_words_are_replaced_as_in_algorithm_1(masked_lm, tokenizer):
    config = ReplacementConfig(probability=0.5, copies=6, candidates=4, seed=3)
    vectors = WordVectors.of_model(masked_lm, tokenizer)
    found = slow_copies(masked_lm, tokenizer, TEXTS, config)
    for batch_size in (1, 64):
        replacer = WordReplacer(masked_lm, tokenizer, vectors, config, batch_size)
        assert replacer(TEXTS) == found
    assert found[3] == [""] * 6
    # Numbers and marks stay, and so do capitals.
    assert all(re.fullmatch(r"[A-Z가-힣].* \S+ \S*[A-Z가-힣]\S* 1930s .*", t) for t in found[2])
    changed = sum(
        a != b for t in found[0] for a, b in zip(t.split(), TEXTS[0].split(), strict=True)
    )
    assert 0.3 < changed / (6 * 8) < 0.7
    # What a text becomes depends on its number, not on the texts around it.
    assert replacer(TEXTS[2:], first=2) == found[2:]
    other = dataclasses.replace(config, seed=4, probability=1.0)
    (bare,) = WordReplacer(masked_lm, tokenizer, None, other)(TEXTS[:1])
    assert set(bare).isdisjoint(found[0])
    words = list(zip(*map(str.split, bare), strict=True))
    assert set(words[8]) == {"unbelievable"} and "dull" not in words[4]


def test_whole_words_of_each_kind_of_tokenizer(tokenizer):
    found = whole_words(tokenizer)
    english = ["a", "fine", "film", "dull", "not", "the", "is"]
    assert [*found.values()] == [*english, "영화", "정말", "좋다", "지루", "plot", "un", "x"]
    assert all(tokenizer.vocabulary[i] == word for i, word in found.items())
    texts = [text for text, _ in make_reviews(300)]
    for kind, some in (("bpe", {"script", "말한다"}), ("unigram", {"clever", "훌륭하다"})):
        learned, _ = train_tokenizer(texts, kind, 400)
        words = set(whole_words(learned).values())
        assert some <= words
        assert {len(learned.encode_words([[w]], 64)[0].token_ids) for w in words} == {3}


def test_vectors_of_files_and_their_neighbours(tmp_path):
    path = tmp_path / "vectors.txt"
    rows = "the 1 0 0\ngood 0 1 0\ngreat 0 0.9 0.1\nnice 0 2 1\n, 1 1 1\nfine 0 1 0.1\n"
    for header in ("", "6 3\n"):
        path.write_text(header + rows)
        vectors = WordVectors.from_file(path)
        assert vectors.words == ["the", "good", "great", "nice", "fine"]
        assert vectors.nearest("good", 3) == ["fine", "great", "nice"]
        assert vectors.nearest("Good", 2) == ["fine", "great"]
        assert vectors.nearest("bad", 2) == []
    for bad, line in (("the 1 0 0\ngood 1 0\n", 2), ("the 1 0\na b c\n", 2), ("the 1 nan\n", 1)):
        path.write_text(bad)
        with pytest.raises(InputError, match=rf"vectors\.txt, line {line}: expected a word and"):
            WordVectors.from_file(path)
    path.write_text(", 1 2\n")
    with pytest.raises(InputError, match="holds no vector of a word of letters"):
        WordVectors.from_file(path)


def slow_continuations(model, tokenizer, texts, config):
    score, found = scores_of(model), []
    for number, text in enumerate(texts):
        words = text.split()
        kept = " ".join(words[: max(round(config.kept * len(words)), 1)])
        draws = np.random.default_rng([config.seed, number]).random(
            (config.copies, config.max_tokens)
        )
        copies = []
        for copy in range(config.copies):
            ids = [2, *map(tokenizer.vocabulary.index, tokenizer.tokens(kept))]
            for draw in draws[copy]:
                logits = score(ids)[-1].astype("float64")
                best = np.argsort(-logits, kind="stable")[: config.top_k]
                shares = np.exp(logits[best] / config.temperature)
                sums = np.cumsum(shares / shares.sum())
                token = next(t for t, s in zip(best, sums, strict=True) if s >= draw)
                if token == tokenizer.vocabulary.index("[SEP]"):
                    break
                ids.append(int(token))
            copies.append(ids)
        found.append((kept, copies))
    return found


def test_texts_are_continued_as_a_loop_draws_them(tokenizer):
    config = Gpt2Config(
        vocabulary_size=tokenizer.vocabulary_size,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=16,
        max_length=12,
        initializer_range=0.5,
    )
    model = build_model(config, "causal_lm")
    texts = ["the film is not dull", "영화 정말 좋다", "plot"]
    drawn = ContinuationConfig(3, 0.5, max_tokens=8, top_k=6, temperature=1.5, seed=1)
    expected, lengths = slow_continuations(model, tokenizer, texts, drawn), set()
    for batch_size in (2, 64):
        found = TextContinuer(model, tokenizer, drawn, batch_size)(texts)
        for copies, (kept, right) in zip(found, expected, strict=True):
            for text, ids in zip(copies, right, strict=True):
                assert text.startswith(kept) and tokenizer.decode(ids) == text
                lengths.add(len(ids))
    assert len(lengths) > 1


def test_models_with_another_head_are_refused(masked_lm, tiny_config, tokenizer):
    with pytest.raises(InputError, match="has the head 'masked_lm', but texts are continued by"):
        TextContinuer(masked_lm, tokenizer)
    model = build_model(dataclasses.replace(tiny_config, num_layers=1), "classifier", 2)
    with pytest.raises(InputError, match="has the head 'classifier', but words are replaced by"):
        WordReplacer(model, tokenizer)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "train.tsv"
    rows = [f"{i}\ttext {i % 6}\t{i % 2}" for i in range(7)]
    path.write_text("id\tsentence\tlabel\n" + "\n".join(rows) + "\n")
    return path


def doubled(texts, first):
    return [[f"{text}!", f"{text}?", f"{text}!"] for text in texts]


def test_a_file_has_examples_and_copies_once_and_goes_on_after_a_kill(
    source, tmp_path, monkeypatch
):
    monkeypatch.setattr(augmentation_file, "PIECE", 2)
    counts = augment_file(doubled, source, tmp_path / "whole")
    # The seventh example is the first again: its copies are there already.
    assert counts == {"originals": 7, "copies": 12, "duplicates": 9, "refused": 0}
    whole = (tmp_path / "whole" / "augmented.tsv").read_text()
    assert whole.splitlines()[:4] == [
        "id\tsentence\tlabel",
        "0\ttext 0\t0",
        "0\ttext 0!\t0",
        "0\ttext 0?\t0",
    ]
    assert len(read_examples(tmp_path / "whole" / "augmented.tsv")) == 19
    calls = []

    def stopped(texts, first):
        calls.append(first)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return doubled(texts, first)

    broken = tmp_path / "broken"
    with pytest.raises(KeyboardInterrupt):
        augment_file(stopped, source, broken, settings={"seed": 1})
    assert not (broken / "augmented.tsv").exists()
    with open(broken / "part.tsv", "a") as file:
        file.write("half a li")  # a kill while a piece was written
    with pytest.raises(InputError, match="were made from another `seed`; give another folder"):
        augment_file(stopped, source, broken, settings={"seed": 2})
    assert augment_file(stopped, source, broken, settings={"seed": 1}) == counts
    assert calls == [0, 2, 4, 4, 6]
    assert (broken / "augmented.tsv").read_text() == whole
    assert augment_file(stopped, source, broken, settings={"seed": 1}) == counts
    assert len(calls) == 5
    source.write_text(source.read_text().replace("text 3", "text three"))
    with pytest.raises(InputError, match="were made from another input file"):
        augment_file(stopped, source, broken, settings={"seed": 1})


def test_a_file_without_its_examples_is_the_same_after_a_kill(source, tmp_path, monkeypatch):
    monkeypatch.setattr(augmentation_file, "PIECE", 2)
    calls = []

    def first_one(texts, first):
        """The first example's text, which is there already, and a new one."""
        calls.append(first)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return [["text 0", f"{text}!"] for text in texts]

    counts = augment_file(first_one, source, tmp_path / "whole", originals=False)
    assert counts == {"originals": 0, "copies": 6, "duplicates": 8, "refused": 0}
    with pytest.raises(KeyboardInterrupt):
        augment_file(first_one, source, tmp_path / "broken", originals=False)
    assert calls == [0, 2, 4, 6, 0, 2]
    assert augment_file(first_one, source, tmp_path / "broken", originals=False) == counts
    whole, broken = (tmp_path / name / "augmented.tsv" for name in ("whole", "broken"))
    assert broken.read_text() == whole.read_text()


def test_a_teachers_labels_are_those_of_the_file(source):
    assert labels_in_file(["0", "1", "2"], source) == ["0", "1", "2"]
    # "LABEL_1" would be another label beside "1" in the file, and agree with none.
    assert labels_in_file(["LABEL_0", "LABEL_1"], source) == ["0", "1"]
    with pytest.raises(InputError, match="has 2 labels and the teacher 3, which have no names"):
        labels_in_file(["LABEL_0", "LABEL_1", "LABEL_2"], source)
    with pytest.raises(InputError, match="has the label '0', but the teacher's labels are bad, g"):
        labels_in_file(["bad", "good"], source)
    lines = source.with_suffix(".txt")
    lines.write_text("a film\n")
    with pytest.raises(InputError, match="has no column 'label', as each line of a"):
        labels_in_file(["bad", "good"], lines)


def test_labels_are_kept_given_or_checked_and_second_texts_augmented_too(tmp_path):
    source = tmp_path / "train.csv"
    source.write_text('a,b,label\n"one\ttwo",x,good\nthree,y,bad\n')
    asked = []

    def judge(texts, pairs):
        asked.append((texts, pairs))
        return ["good"] * len(texts)

    def copies(texts, first):
        return [[f"{text} {first + i}"] for i, text in enumerate(texts)]

    found = {}
    for name, keep in (("teacher", False), ("agree", True)):
        counts = augment_file(
            copies, source, tmp_path / name, "a", "b", "label", judge, keep, originals=keep
        )
        found[name] = (tmp_path / name / "augmented.tsv").read_text().splitlines()[1:]
        assert counts["refused"] == (1 if keep else 0)
    assert asked[0] == (["one two 0", "three 2"], ["x 1", "y 3"])
    assert found["teacher"] == ["one two 0\tx 1\tgood", "three 2\ty 3\tgood"]
    assert found["agree"] == ["one two\tx\tgood", "one two 0\tx 1\tgood", "three\ty\tbad"]
    with pytest.raises(InputError, match="has no column 'sentence'"):
        augment_file(copies, source, tmp_path / "none")
