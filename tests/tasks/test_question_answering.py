"""Question answering: files, windows, answers, loss and scores."""

import gzip
import json

import numpy as np
import pytest

from tfnlp.tasks import QuestionAnswering, read_questions
from tfnlp.tasks.question_answering import Questions, f1, normalise
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


TWICE = json.loads(squad("a film", []))
TWICE["data"] *= 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (squad("a plot", [{"answer_start": 2, "text": "film"}]), "'film' of question 1 is not in"),
        (squad("a film", [{"answer_start": -4, "text": "fil"}]), "is not in its context at .* -4"),
        (squad("a film", [{"answer_start": "2", "text": "film"}]), "after 0 questions .TypeError"),
        (squad("a film", None), r"a\.json is not in SQuAD's JSON format after 0 questions"),
        (squad("a film", [], question=5), "after 0 questions .AttributeError"),
        (squad("a film", [{"text": "film"}]), "after 0 questions .KeyError: 'answer_start'"),
        (json.dumps(TWICE), "2 questions have the id '1'"),
        ("[]", "in SQuAD's JSON format"),
        ('{"data": [{}]}', "in SQuAD's JSON format"),
        ('{"data": [{"paragraphs": [{"context": "", "qas": [5]}]}]}', "in SQuAD's JSON format"),
    ],
)
def test_bad_questions_are_named(text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read_questions(write(tmp_path / "a.json", text))


def test_gzipped_questions_with_halves_of_surrogate_pairs(tmp_path):
    text = squad("\ud83d film", [{"answer_start": 2, "text": "film"}])
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
    found = read_questions(path)
    assert found.contexts == ["\ufffd film"] and found.answers == [[(2, "film")]]


def test_questions_without_answers_need_null_answers(tokenizer, tmp_path):
    answer = {"answer_start": 2, "text": "film"}
    for answers in ([], [{"answer_start": -1, "text": ""}]):
        path = write(tmp_path / "none.json", squad("a film", answers))
        with pytest.raises(InputError, match=r"1 of 1 questions.* null_answers=True"):
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


def test_null_answers_and_n_best(tokenizer):
    contexts, answers = ["a fine film", "a dull plot"], [[(2, "fine"), (7, "film")], []]
    examples = Questions(["1", "2"], ["film ?"] * 2, contexts, answers)
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
    questions, answers = ["film " * 200, "film ?"], [[(2, "fine")]] * 2
    examples = Questions(["1", "2"], questions, ["a fine film"] * 2, answers)
    with caplog.at_level("WARNING", "absl"):
        windows, labels = QuestionAnswering().encode(tokenizer, examples, 32)
    assert "1 of 2 questions are longer than is read" in caplog.text
    # [CLS] film x 14 [SEP] a fine film [SEP], and [CLS] film [UNK] [SEP] a fine film [SEP]
    assert [len(w.token_ids) for w in windows] == [20, 8]
    assert [w.truncated for w in windows] == [True, False]
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
    for weights in (None, np.array([0.5, 0, 2], "float32")):
        due = np.average(losses, weights=weights)
        loss = QuestionAnswering().loss(labels, outputs, weights)
        assert float(loss) == pytest.approx(due, rel=1e-5)
