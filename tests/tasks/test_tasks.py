"""Each task: reading, encoding, loss, score, and what bad input is told."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from tfnlp.errors import InputError
from tfnlp.models import build_model
from tfnlp.tasks import (
    Answering,
    Choosing,
    Classification,
    Regression,
    Tagging,
    read_choices,
    read_questions,
    read_scored_pairs,
    read_tagged,
)
from tfnlp.tasks.answering import Questions, f1, normalise
from tfnlp.tasks.choosing import Choices
from tfnlp.tasks.regression import ScoredExamples
from tfnlp.tasks.tagging import TaggedSentences, tag_names
from tfnlp.text import Examples, WordPieceTokenizer
from tfnlp.text.answers import window_answers
from tfnlp.text.batches import IGNORED
from tfnlp.training import FineTuner, RunFolder, TrainingConfig, encode_batches, finetune
from tfnlp.training.adversarial import AdversarialRegularizer


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# Reading


def test_read_tagged(tmp_path):
    path = write(tmp_path / "a.conll", "-DOCSTART- O\n\nthe\tO\nfilm\tB-x\n\n\na\tO\n")
    found = read_tagged(path)
    assert found.sentences == [["the", "film"], ["a"]]
    assert found.tags == [["O", "B-x"], ["O"]]
    assert tag_names(found) == ["O", "B-x"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the\tO\nfilm\n", "line 2: 'film' has a word but no tag"),
        ("the\tB-y\n", "line 1: tag 'B-y' is not one of the tags"),
        ("\n\n", "holds no sentence"),
    ],
)
def test_bad_tags_are_named(text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read_tagged(write(tmp_path / "a.conll", text), ["O", "B-x"])


def squad(context, answers, **fields):
    qa = {"id": "1", "question": "who ?", "answers": answers} | fields
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": [qa]}]}]})


def test_read_questions(tmp_path):
    answers = [{"answer_start": 2, "text": "film"}]
    path = write(tmp_path / "a.json", squad("a film", answers))
    assert read_questions(path).answers == [[(2, "film")]]
    path = write(tmp_path / "b.json", squad("a film", answers, is_impossible=True))
    assert read_questions(path).answers == [[]]
    path = write(tmp_path / "c.json", squad("a plot", answers))
    with pytest.raises(InputError, match="answer 'film' of question 1 is not in its context"):
        read_questions(path)
    for text in ("[]", '{"data": [{}]}'):
        with pytest.raises(InputError, match=r"in SQuAD's JSON format|JSON object"):
            read_questions(write(tmp_path / "d.json", text))


def test_read_scores_and_choices(tmp_path):
    path = write(tmp_path / "a.tsv", "sentence1\tsentence2\tscore\na\tb\t2.5\n")
    assert read_scored_pairs(path).labels == [2.5]
    path = write(tmp_path / "b.tsv", "sentence1\tsentence2\tscore\na\tb\tx\n")
    with pytest.raises(InputError, match="line 2: score 'x' is not a number"):
        read_scored_pairs(path)
    path = write(tmp_path / "c.tsv", "prompt\tchoice0\tchoice1\tlabel\na\tb\tc\t1\n")
    found = read_choices(path)
    assert (found.prompts, found.endings, found.labels) == (["a"], [["b", "c"]], [1])
    path = write(tmp_path / "d.tsv", "prompt\tchoice0\tchoice1\tlabel\na\tb\tc\t2\n")
    with pytest.raises(InputError, match="line 2: label '2' is not the number of an ending"):
        read_choices(path)
    path = write(tmp_path / "e.tsv", "prompt\tlabel\na\t0\n")
    with pytest.raises(InputError, match="0 columns of endings"):
        read_choices(path)


# Scores


def test_classification_scores():
    task = Classification(["no", "yes"], "matthews")
    examples = Examples(["a"] * 6, labels=[0, 0, 1, 1, 1, 1])
    logits = np.eye(2)[[0, 1, 1, 1, 1, 0]]
    found = task.score(examples, None, {"logits": list(logits)})
    assert found["accuracy"] == pytest.approx(4 / 6)
    # (tp tn - fp fn) / sqrt((tp + fp)(tp + fn)(tn + fp)(tn + fn))
    assert found["matthews"] == pytest.approx((3 * 1 - 1 * 1) / np.sqrt(4 * 4 * 2 * 2))
    assert found["f1"] == pytest.approx((0.5 + 0.75) / 2)


def test_regression_scores():
    examples = ScoredExamples(["a"] * 4, None, [1.0, 2.0, 3.0, 10.0])
    found = Regression().score(examples, None, {"logits": list(np.array([[1], [2], [3], [4.0]]))})
    assert found["spearman"] == pytest.approx(1)
    assert found["pearson"] == pytest.approx(np.corrcoef([1, 2, 3, 4], [1, 2, 3, 10])[0, 1])
    assert found["mean_squared_error"] == pytest.approx(9)
    constant = Regression().score(examples, None, {"logits": [np.ones(1)] * 4})
    assert constant["pearson"] == constant["spearman"] == 0


def test_first_tokens_carry_the_tags(tokenizer):
    task = Tagging(["O", "B-x", "I-x"])
    examples = TaggedSentences([["unbelievable", "film", "!"]], [["B-x", "I-x", "O"]])
    windows, labels = task.encode(tokenizer, examples, 16)
    assert len(windows) == 1
    # [CLS] un ##believ ##able film ! [SEP]
    assert labels == [[IGNORED, 1, IGNORED, IGNORED, 2, 0, IGNORED]]
    logits = np.eye(3)[[0, 1, 0, 0, 2, 0, 0]]
    found = task.score(examples, windows, {"logits": [logits]})
    assert found["f1"] == found["word_accuracy"] == 1
    wrong = np.eye(3)[[0, 1, 0, 0, 0, 0, 0]]
    found = task.score(examples, windows, {"logits": [wrong]})
    assert found["f1"] == 0 and found["word_accuracy"] == pytest.approx(2 / 3)


def test_tags_of_long_sentences_come_from_windows(tokenizer):
    words = ["film", "plot", "unbelievable", "dull"] * 8
    tags = [("B-a", "B-b", "B-c", "O")[i % 4] for i in range(32)]
    names = ["O", "B-a", "B-b", "B-c"]
    task = Tagging(names, stride=3)
    examples = TaggedSentences([words], [tags])
    windows, labels = task.encode(tokenizer, examples, 12)
    assert len(windows) > 4
    logits = [np.eye(4)[np.where(np.array(row) < 0, 0, row)] for row in labels]
    assert task.predict(examples.sentences, windows, {"logits": logits}) == [tags]


def test_answer_scores():
    # Pairs that SQuAD's official script was given, and what it says of them.
    assert normalise("The  Quick, brown fox!") == "quick brown fox"
    assert f1("the brown fox", "a quick brown fox") == pytest.approx(0.8)
    assert f1("", "") == 1 and f1("fox", "") == 0


@pytest.mark.parametrize("family", ["wordpiece", "bpe", "unigram"])
def test_answers_come_back_from_their_tokens(family, data_dir, minilm):
    from tfnlp.text import train_byte_level_bpe, train_unigram

    examples = read_questions(data_dir / "xquad_en" / "dev.json")
    texts = examples.contexts[::5]
    tokenizer = {
        "wordpiece": lambda: WordPieceTokenizer.from_folder(minilm),
        "bpe": lambda: train_byte_level_bpe(texts, 2000),
        "unigram": lambda: train_unigram(texts, 2000, "deberta-v2"),
    }[family]()
    task = Answering(stride=64)
    windows, labels = task.encode(tokenizer, examples, 192)
    assert len(windows) > len(examples)
    found = [set() for _ in examples.questions]
    for window, (start, end) in zip(windows, labels, strict=True):
        if window.sources[start] == 1:
            context = examples.contexts[window.example]
            found[window.example].add(context[window.offsets[start][0] : window.offsets[end][1]])
    right = [answers[0][1] for answers in examples.answers]
    exact = [
        any(normalise(text) == normalise(r) for text in texts)
        for texts, r in zip(found, right, strict=True)
    ]
    # Some answers begin or end inside a word; those come back with the whole of it.
    assert np.mean(exact) > 0.97
    outputs = {
        name: [
            9.0 * np.eye(len(w.token_ids))[places[column]]
            for w, places in zip(windows, labels, strict=True)
        ]
        for column, name in enumerate(("start_logits", "end_logits"))
    }
    assert task.score(examples, windows, outputs)["exact_match"] > 0.97


def test_null_answers_and_n_best(tokenizer):
    examples = Questions(
        ["1", "2"], ["film ?"] * 2, ["a fine film", "a dull plot"], [[(2, "fine")], []]
    )
    task = Answering(null_answers=True)
    windows, labels = task.encode(tokenizer, examples, 32)
    # [CLS] film [UNK] [SEP] a fine film [SEP]
    assert labels.tolist() == [[5, 5], [0, 0]]
    start = [np.zeros(8), np.zeros(8)]
    start[0][5], start[1][0] = 3.0, 2.0
    outputs = {"start_logits": start, "end_logits": start}
    lists = task.n_best(examples, windows, outputs, 3)
    assert (lists[0][0].text, lists[0][0].score) == ("fine", 6.0)
    assert (lists[0][0].start, lists[0][0].end) == (2, 6)
    assert lists[1][0].text == "" and lists[1][0].score == 4.0
    assert task.score(examples, windows, outputs) == {"f1": 1.0, "exact_match": 1.0}
    assert len(window_answers(windows[0], start[0], start[0], "a fine film", count=2)) <= 4


def test_questions_that_leave_no_room_are_named(tokenizer):
    examples = Questions(["1"], ["film " * 30], ["a fine film"], [[]])
    with pytest.raises(InputError, match=r"--max_length=32 leaves -1 tokens"):
        Answering().encode(tokenizer, examples, 32)


# Training


def data_for(task_name):
    words = ["fine", "dull"]
    rng = np.random.default_rng(0)
    picks = rng.integers(0, 2, 48)
    texts = [f"the {words[p]} film" for p in picks]
    if task_name == "classifier":
        return Classification(["0", "1"]), Examples(texts, labels=picks.tolist())
    if task_name == "regression":
        return Regression(), ScoredExamples(texts, texts, [float(p) for p in picks])
    if task_name == "tagger":
        tags = [["O", "B-x" if p else "O", "O"] for p in picks]
        return Tagging(["O", "B-x"]), TaggedSentences([t.split() for t in texts], tags)
    if task_name == "answerer":
        contexts = ["the fine film is dull"] * 48
        answers = [[(4, "fine")] if p else [(17, "dull")] for p in picks]
        questions = [("a ?" if p else "is ?") for p in picks]
        ids = [str(i) for i in range(48)]
        return Answering(), Questions(ids, questions, contexts, answers)
    endings = [["fine", "dull"] for _ in picks]
    return Choosing(), Choices(texts, endings, picks.tolist())


TASKS = ("classifier", "regression", "tagger", "answerer", "chooser")


@pytest.mark.parametrize(
    ("name", "adversarial"),
    [*((name, False) for name in TASKS), ("tagger", True)],
)
def test_every_task_is_learned(name, adversarial, tiny_config, tokenizer, tmp_path):
    task, data = data_for(name)
    model = build_model(tiny_config, task.head, task.num_classes)
    regularizer = AdversarialRegularizer(model, task.outputs, 0.5) if adversarial else None
    config = TrainingConfig(epochs=8, batch_size=8, learning_rate=2e-3)
    run = RunFolder(tmp_path / "run", {})
    figures = finetune(
        task, model, tokenizer, data, data, config, run, 32, regularizer=regularizer
    )
    assert figures[f"dev_{task.monitor}"] > 0.95
    assert (run.path / "curves.png").exists() and (run.best / "config.json").exists()


@pytest.mark.parametrize("name", TASKS)
def test_losses_leave_padding_out(name, tiny_config, tokenizer):
    """The loss of a batch is the mean of its parts, however they are padded and weighted."""
    task, data = data_for(name)
    for field in ("texts", "contexts", "prompts"):
        if hasattr(data, field):
            uneven = [text + " film" * i for i, text in enumerate(getattr(data, field)[:4])]
            setattr(data, field, uneven + getattr(data, field)[4:])
    if name == "tagger":
        for i in range(4):
            data.sentences[i] += ["film"] * i
            data.tags[i] += ["O"] * i
    model = build_model(tiny_config, task.head, task.num_classes)
    batches = encode_batches(task, tokenizer, data, 32, 4)
    inputs, labels = batches.batch(np.arange(4))
    assert inputs["padding_mask"].sum(-1).min() < inputs["padding_mask"].shape[-1]
    parts = []
    for i in range(4):
        x, y = batches.batch(np.array([i]))
        if name == "answerer":
            # Its softmax is over all positions of the batch, as in `transformers`.
            x = {key: value[i : i + 1] for key, value in inputs.items()}
        parts.append(float(task.loss(y, model(x))))
    # A mean over tokens, where they have labels, and over texts elsewhere.
    counts = np.array([3, 4, 5, 6] if name == "tagger" else [1, 1, 1, 1])
    outputs = model(inputs)
    assert float(task.loss(labels, outputs)) == pytest.approx(
        np.average(parts, weights=counts), abs=1e-5
    )
    weights = np.array([0.5, 0, 2, 1], "float32")
    expected = np.average(parts, weights=counts * weights)
    assert float(task.loss(labels, outputs, weights)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("num_classes", [1, 2])
def test_adversarial_loss_grows_with_the_step(num_classes, tiny_config, random_inputs):
    inputs = random_inputs(4, 9, tiny_config.vocabulary_size)
    config = dataclasses.replace(tiny_config, dropout=0.0, attention_dropout=0.0)
    model = build_model(config, "classifier", num_classes)
    outputs = {"logits": model(inputs)["logits"]}
    losses = []
    for start, step in ((0.0, 0.0), (1e-2, 0.0), (1e-2, 0.5), (1e-2, 2.0)):
        regularizer = AdversarialRegularizer(model, ("logits",), 1.0, step, start, seed=1)
        losses.append(float(regularizer(inputs, outputs)))
    assert losses[0] == pytest.approx(0, abs=1e-10)
    assert losses[0] < losses[1] < losses[2] < losses[3]


def test_adversarial_loss_is_the_symmetric_divergence(tiny_config):
    model = build_model(tiny_config, "classifier", 3)
    regularizer = AdversarialRegularizer(model, ("logits",), 1.0)
    a, b = (tf.Variable(np.random.default_rng(n).normal(size=(5, 3))) for n in range(2))
    with tf.GradientTape() as tape:
        found = regularizer._divergence({"logits": a}, {"logits": b}, {})
    p, q = (tf.nn.softmax(x).numpy() for x in (a, b))
    assert float(found) == pytest.approx(np.mean(np.sum((p - q) * np.log(p / q), -1)), rel=1e-5)
    # Cross-entropies towards the other's probabilities: a pulls at b as b pulls at a.
    by_a, by_b = tape.gradient(found, [a, b])
    np.testing.assert_allclose(by_a, (p - q) / 5, atol=1e-6)
    np.testing.assert_allclose(by_b, (q - p) / 5, atol=1e-6)


def test_adversarial_losses_are_weighted_by_example(tiny_config, random_inputs):
    config = dataclasses.replace(tiny_config, dropout=0.0, attention_dropout=0.0)
    task, model = Tagging(["O", "B-x"]), build_model(config, "tagger", 2)
    inputs = random_inputs(3, 7, tiny_config.vocabulary_size)
    labels = np.where(inputs["padding_mask"], 1, IGNORED)

    def loss(rows, weights=None):
        x = {key: value[rows] for key, value in inputs.items()}
        regularizer = AdversarialRegularizer(model, ("logits",), 1.0, 0.5, 0.1, seed=1)
        tuner = FineTuner(model, task, regularizer)
        return float(tuner.compute_loss(x, labels[rows], tuner(x), weights))

    # The random start of the first two is the same in a batch of two and of three.
    whole, part = loss([0, 1, 2], np.array([1.0, 1.0, 0.0])), loss([0, 1])
    assert whole == pytest.approx(part, rel=1e-5)
    assert loss([0, 1], np.array([3.0, 3.0])) == pytest.approx(part, rel=1e-5)
    assert loss([0, 1, 2]) != pytest.approx(part, rel=1e-3)


def test_one_class_is_refused(tiny_config, random_inputs):
    """Its loss would be 0 from the first step on."""
    model = build_model(tiny_config, "classifier", 1)
    outputs = model(random_inputs(2, 5, tiny_config.vocabulary_size))
    with pytest.raises(ValueError, match=r"logits of shape \(2, 1\) have one class"):
        Classification(["only"]).loss(np.zeros(2, "int32"), outputs)


def test_finetuner_saves_nothing_of_its_own(tiny_config):
    task, _ = data_for("tagger")
    model = build_model(tiny_config, "tagger", 2)
    assert len(FineTuner(model, task).weights) == len(model.weights)
