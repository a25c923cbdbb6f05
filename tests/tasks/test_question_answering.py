"""Question answering: files, windows, answers, loss and scores."""

import gzip
import json

import numpy as np
import pytest

from tfnlp.tasks import QuestionAnswering, read_questions
from tfnlp.tasks.question_answering import Questions, f1, normalise
from tfnlp.text import WordPieceTokenizer
from tfnlp.text.decoding.answers import window_answers
from tfnlp.utils.errors import InputError


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


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
    for text in (
        "[]",
        '{"data": [{}]}',
        '{"data": [{"paragraphs": [{"context": "", "qas": [5]}]}]}',
    ):
        with pytest.raises(InputError, match=r"in SQuAD's JSON format|JSON object"):
            read_questions(write(tmp_path / "d.json", text))
    with pytest.raises(InputError, match=r"none\.json does not exist"):
        read_questions(tmp_path / "none.json")


def test_questions_of_klue(tmp_path):
    """KLUE-MRC calls the id `guid` and has fields of its own."""
    answer = {"text": "1998년", "answer_start": 4}
    impossible = {"is_impossible": True, "plausible_answers": [answer], "question_type": 3}
    qas = [
        {"question": "언제?", "answers": [answer, answer], "guid": "klue-mrc-v1_dev_00000"},
        {"question": "왜?", "answers": [], "guid": "klue-mrc-v1_dev_00001"} | impossible,
    ]
    article = {"title": "가", "news_category": None, "source": "a"}
    article["paragraphs"] = [{"context": "그는 (1998년", "qas": qas}]
    path = write(tmp_path / "a.json", json.dumps({"version": "v1", "data": [article]}))
    found = read_questions(path)
    assert found.ids == ["klue-mrc-v1_dev_00000", "klue-mrc-v1_dev_00001"]
    assert found.answers == [[(4, "1998년")] * 2, []]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"answers": [{"answer_start": -4, "text": "fil"}]}, "is not in its context at .* -4"),
        ({"answers": [{"answer_start": "2", "text": "film"}]}, "after 0 questions .TypeError: "),
        ({"answers": None}, r"a\.json is not in SQuAD's JSON format after 0 questions .TypeError"),
        ({"question": 5}, "in SQuAD's JSON format after 0 questions .AttributeError: 'int' "),
        ({"answers": [{"text": "film"}]}, "after 0 questions .KeyError: 'answer_start'"),
    ],
)
def test_bad_questions_are_named(fields, message, tmp_path):
    path = write(tmp_path / "a.json", squad("a film", []))
    assert len(read_questions(path)) == 1
    path = write(path, squad("a film", **{"answers": []} | fields))
    with pytest.raises(InputError, match=message):
        read_questions(path)


def test_duplicate_question_ids_are_refused(tmp_path):
    value = json.loads(squad("a film", [{"answer_start": 2, "text": "film"}]))
    value["data"] *= 2
    path = write(tmp_path / "a.json", json.dumps(value))
    with pytest.raises(InputError, match="2 questions have the id '1'"):
        read_questions(path)


def test_gzipped_questions_with_halves_of_surrogate_pairs(tmp_path):
    text = squad("\ud83d film", [{"answer_start": 2, "text": "film"}])
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    found = read_questions(path)
    assert found.contexts == ["\ufffd film"] and found.answers == [[(2, "film")]]


def test_questions_without_answers_need_null_answers(tokenizer, tmp_path):
    answer = {"answer_start": 2, "text": "film"}
    none = [
        squad("a film", [answer], is_impossible=True),
        squad("a film", []),
        squad("a film", [{"answer_start": -1, "text": ""}]),
    ]
    for i, text in enumerate(none):
        path = write(tmp_path / f"{i}.json", text)
        with pytest.raises(InputError, match=rf"{i}\.json: 1 of 1 questions.* null_answers=True"):
            read_questions(path, null_answers=False)
        found = read_questions(path)
        assert found.answers == [[]]
        with pytest.raises(InputError, match="1 of 1 questions, 1 the first, have no answer"):
            QuestionAnswering().encode(tokenizer, found, 32)
        _, labels = QuestionAnswering(null_answers=True).encode(tokenizer, found, 32)
        assert labels.tolist() == [[0, 0]]
    path = write(tmp_path / "a.json", squad("a film", [answer]))
    assert read_questions(path, null_answers=False).answers == [[(2, "film")]]


def test_answer_scores():
    # Pairs that SQuAD's official script was given, and what it says of them.
    assert normalise("The  Quick, brown fox!") == "quick brown fox"
    assert f1("the brown fox", "a quick brown fox") == pytest.approx(0.8)
    assert f1("", "") == 1 and f1("fox", "") == 0
    # The best of several right answers counts; no answer is right where there is none.
    rights = [[(0, "a dog"), (0, "red fox"), (0, "cat")], [(0, "fox"), (0, "dog")], []]
    examples = Questions(["1", "2", "3"], [""] * 3, [""] * 3, rights)
    scores = QuestionAnswering().score_predictions(examples, ["the red fox", "quick dog", ""])
    assert scores == {"f1": pytest.approx((1 + 2 / 3 + 1) / 3), "exact_match": 2 / 3}


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
    task = QuestionAnswering(stride=64)
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
    for context, answers in zip(
        examples.contexts, task.n_best(examples, windows, outputs), strict=True
    ):
        for answer in answers:
            assert answer.text == context[answer.start : answer.end] == answer.text.strip() != ""


def test_null_answers_and_n_best(tokenizer):
    examples = Questions(
        ["1", "2"],
        ["film ?"] * 2,
        ["a fine film", "a dull plot"],
        [[(2, "fine"), (7, "film")], []],
    )
    task = QuestionAnswering(null_answers=True)
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


def test_one_long_question_is_cut_and_counted(tokenizer, caplog):
    examples = Questions(
        ["1", "2"], ["film " * 200, "film ?"], ["a fine film"] * 2, [[(2, "fine")], [(2, "fine")]]
    )
    with caplog.at_level("WARNING", "absl"):
        windows, labels = QuestionAnswering().encode(tokenizer, examples, 32)
    assert "1 of 2 questions are longer than is read" in caplog.text
    # [CLS] film x 14 [SEP] a fine film [SEP], and [CLS] film [UNK] [SEP] a fine film [SEP]
    assert [len(w.token_ids) for w in windows] == [20, 8] and [w.truncated for w in windows] == [
        1,
        0,
    ]
    assert labels.tolist() == [[17, 17], [5, 5]]
    logits = [np.zeros(20), np.zeros(8)]
    for task in (QuestionAnswering(), QuestionAnswering(null_answers=True)):
        outputs = {"start_logits": logits, "end_logits": logits}
        found = task.n_best(examples, windows, outputs)
        assert [{answer.truncated for answer in answers} for answers in found] == [{True}, {False}]
    windows, _ = QuestionAnswering(max_question_length=3).encode(tokenizer, examples, 32)
    assert [len(w.token_ids) for w in windows] == [9, 8]
    # Of a question 64 tokens are read where there is room.
    windows, _ = QuestionAnswering().encode(tokenizer, examples, 384)
    assert [len(w.token_ids) for w in windows] == [70, 8]


def test_the_loss_of_answers_is_over_all_tokens():
    """Padding too, as in BERT's own code and in `transformers`."""
    rng = np.random.default_rng(0)
    start, end = rng.normal(size=(2, 3, 7)).astype("float32")
    labels = np.array([[1, 2], [0, 0], [6, 3]])
    outputs = {"start_logits": start, "end_logits": end}
    rows = np.arange(3)
    probabilities = [np.exp(x) / np.exp(x).sum(-1, keepdims=True) for x in (start, end)]
    losses = np.mean([-np.log(p[rows, labels[:, i]]) for i, p in enumerate(probabilities)], axis=0)
    assert float(QuestionAnswering().loss(labels, outputs)) == pytest.approx(
        losses.mean(), rel=1e-5
    )
    weights = np.array([0.5, 0, 2], "float32")
    expected = np.average(losses, weights=weights)
    assert float(QuestionAnswering().loss(labels, outputs, weights)) == pytest.approx(
        expected, rel=1e-5
    )
