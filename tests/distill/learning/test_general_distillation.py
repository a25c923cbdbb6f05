"""The general stage: losses as NumPy counts them, exact resume, and a folder to go on from."""

import dataclasses

import keras
import numpy as np
import pytest

from distill.learning import (
    GeneralDistillation,
    Teacher,
    UnlabelledTexts,
    make_student,
    make_terms,
    resolve_masking,
)
from distill.learning.distiller import Distiller
from distill.learning.teacher import load_general_teacher
from tests.distill.learning.test_all_tasks import log_softmax
from tests.kills import KILLS, killed_after
from tfnlp.checkpoints import load_model, read_head, save_model
from tfnlp.models import build_model
from tfnlp.objectives import MaskedBatches, MaskedLM, Masking, encode_texts, predict_at_positions
from tfnlp.training import RunFolder, TrainingConfig
from tfnlp.utils.errors import InputError

TEXTS = ["a fine film", "the plot is dull .", "unbelievable !", "not a dull film , is x"] * 3
CONFIG = TrainingConfig(epochs=2, batch_size=4, learning_rate=1e-2, checkpoint_steps=2)


@pytest.fixture(scope="module")
def teacher(one_layer):
    keras.utils.set_random_seed(1)
    return build_model(one_layer, "masked_lm", hidden_states=True, attention_scores=True)


@pytest.fixture(scope="module")
def encodings(tokenizer):
    return encode_texts(iter(TEXTS), tokenizer, 10)[0]


def test_the_losses_of_distilbert_are_those_of_loops(teacher, one_layer, encodings, tokenizer):
    config = dataclasses.replace(one_layer, dropout=0.0, attention_dropout=0.0)
    student = build_model(config, "masked_lm", hidden_states=True)
    masking = Masking.from_tokenizer(tokenizer, share=0.4)
    batches = MaskedBatches(encodings, 12, masking, pad_token_id=tokenizer.pad_token_id)
    terms = make_terms("distilbert", teacher, student, MaskedLM())
    models = predict_at_positions(student), predict_at_positions(teacher)
    distiller = Distiller(models[0], MaskedLM(), terms, models[1], hard_label_weight=2.0)
    inputs, labels = next(batches.epoch(0))
    assert len(np.unique((labels != -100).sum(1))) > 1  # texts with fewer than others
    found = float(distiller.compute_loss(inputs, labels, distiller(inputs)))

    plain = {key: value for key, value in inputs.items() if key != "masked_positions"}
    a, b = (keras.tree.map_structure(np.asarray, model(plain)) for model in (teacher, student))
    soft, hard, cosines = [], [], []
    for row, places in enumerate(inputs["masked_positions"]):
        for place, label in zip(places, labels[row], strict=True):
            if label == -100:
                continue
            hard.append(-log_softmax(b["logits"][row, place])[label])
            p, q = (log_softmax(x["logits"][row, place] / 2) for x in (a, b))
            soft.append(4 * np.sum(np.exp(p) * (p - q)))
        for place in np.flatnonzero(inputs["padding_mask"][row]):
            x, y = (m["hidden_states"][-1][row, place] for m in (a, b))
            cosines.append(1 - x @ y / np.linalg.norm(x) / np.linalg.norm(y))
    parts = [np.mean(hard), np.mean(soft), np.mean(cosines)]
    assert found == pytest.approx(np.dot([2, 5, 1], parts), rel=1e-4)
    shown = distiller.get_metrics_result()
    names = ("masked_lm_loss", "soft_label_loss", "cosine_loss")
    assert [float(shown[name]) for name in names] == pytest.approx(parts, rel=1e-4)
    assert min(parts) > 1e-3


def test_texts_come_in_another_order_in_each_epoch_padded_alike(teacher, encodings, tokenizer):
    def orders(task=None, **changes):
        config = dataclasses.replace(CONFIG, **changes)
        fields = {"config": config, "run": None, "teacher": Teacher([teacher], tokenizer)}
        texts = UnlabelledTexts(encodings)
        stage = GeneralDistillation(task, teacher, tokenizer, texts, **fields, terms=[])
        stage.check()
        batches = stage.encode()["train"]
        (inputs,) = batches.batch(np.arange(2))
        assert inputs["token_ids"].shape[1] == (9 if config.fixed_length else 7)
        return [np.concatenate(batches.batch_indices(epoch)).tolist() for epoch in (0, 1)]

    first, second = orders()
    assert first != second and sorted(first) == sorted(second) == [*range(12)]
    assert orders(seed=1, fixed_length=True)[0] != first
    with pytest.raises(InputError, match="`masking`"):
        orders(MaskedLM())


def test_resolve_masking_goes_by_the_method_unless_it_is_said():
    assert resolve_masking("tinybert") == (False, 0.0, 0.0)
    assert resolve_masking("logits") == (True, 0.0, 0.15)
    assert resolve_masking("distilbert") == (True, 2.0, 0.15)
    # Without soft labels DistilBERT's student still learns the hidden tokens themselves.
    assert resolve_masking("distilbert", soft_label_weight=0.0) == (False, 2.0, 0.15)
    assert resolve_masking("distilbert", 0.0, masked_lm_weight=0.0) == (False, 0.0, 0.0)
    assert resolve_masking("minilm", soft_label_weight=0.5) == (True, 0.0, 0.15)
    assert resolve_masking("tinybert", None, 1.0, 0.3, whole_words=True) == (False, 1.0, 0.3)
    with pytest.raises(InputError, match="whole_words=True has no effect where no tok"):
        resolve_masking("tinybert", whole_words=True)


def test_a_killed_general_stage_ends_with_the_same_weights_and_its_folder_goes_on(
    teacher, encodings, tokenizer, tmp_path, no_graphs
):
    config = dataclasses.replace(CONFIG, epochs=6)

    def run(name, encodings=encodings, stop_after=None):
        keras.utils.set_random_seed(0)
        student, run = make_student(teacher, 1, hidden_dim=16), RunFolder(tmp_path / name, {})
        terms = make_terms("distilbert", teacher, student, MaskedLM())
        texts = UnlabelledTexts(encodings, Masking.from_tokenizer(tokenizer))
        fields = {"config": config, "run": run, "teacher": Teacher([teacher], tokenizer)}
        fields |= {"terms": terms, "masked_lm_weight": 2.0}
        with killed_after(stop_after):
            figures = GeneralDistillation(
                MaskedLM(), student, tokenizer, texts, **fields
            ).run_all()
        return figures, student, run

    figures, whole, folder = run("whole")
    with pytest.raises(KILLS):
        run("broken", stop_after=5)
    resumed_figures, resumed, _ = run("broken")
    assert resumed_figures == pytest.approx(figures)
    for a, b in zip(whole.weights, resumed.weights, strict=True):
        np.testing.assert_array_equal(a, b)

    first, *_, last = folder.metrics()
    assert last["loss"] < 0.9 * first["loss"]
    parts = 2 * last["masked_lm_loss"] + 5 * last["soft_label_loss"] + last["cosine_loss"]
    assert last["loss"] == pytest.approx(parts, rel=1e-5)
    assert figures["soft_label_loss"] == last["soft_label_loss"]
    assert (figures["texts"], figures["parameters"]) == (12, whole.count_params())
    card = (folder.path / "README.md").read_text()
    assert f"| masked lm loss | {last['masked_lm_loss']:.4f} |" in card
    assert (folder.path / "curves.png").exists()
    assert read_head(folder.best) == "masked_lm"
    model = load_model(folder.best, "classifier", 2)
    for weight in whole.get_layer("encoder_0").weights:
        own = next(w for w in model.weights if w.path == weight.path)
        np.testing.assert_array_equal(own, weight)
    # Other texts are other runs, though their ids be as many.
    with pytest.raises(InputError, match="was trained on other content of the encoded batches"):
        run("whole", encode_texts(TEXTS[::-1], tokenizer, 10)[0])


def test_an_encoder_without_a_head_teaches_states_and_attention(
    one_layer, encodings, tokenizer, tmp_path, no_graphs
):
    config = dataclasses.replace(one_layer, dropout=0.0, attention_dropout=0.0)
    save_model(build_model(config), tmp_path / "encoder")
    outputs = {"hidden_states": True, "attention_scores": True}
    teacher = load_general_teacher(tmp_path / "encoder", predicts=False, **outputs)
    student = make_student(teacher, 1, hidden_dim=24, num_heads=3)
    terms = make_terms("tinybert", teacher, student)
    assert "soft_label" not in {term.name for term in terms}
    run = RunFolder(tmp_path / "run", {})
    texts = UnlabelledTexts(encodings)

    def distil(owner, student, texts, config, run, terms, task=None):
        fields = {"config": config, "run": run, "teacher": owner, "terms": terms}
        return GeneralDistillation(task, student, tokenizer, texts, **fields).run_all()

    figures = distil(Teacher([teacher], tokenizer), student, texts, CONFIG, run, terms)
    losses = {key for key in figures if key.endswith("loss")}
    assert losses == {"loss", "embedding_loss", "hidden_state_loss", "attention_score_loss"}
    first, last = run.metrics()
    assert last["loss"] < first["loss"] and last["hidden_state_loss"] < first["hidden_state_loss"]
    loaded = load_model(run.best)
    assert (loaded.text_config.hidden_dim, loaded.text_config.num_heads) == (24, 3)

    # The same losses, up to float16, by a teacher that runs once; and it is read again.
    cached, cache = RunFolder(tmp_path / "cached", {}), tmp_path / "cache"
    keras.utils.set_random_seed(3)
    students = [make_student(teacher, 1, hidden_dim=24, num_heads=4) for _ in range(2)]
    students[1].set_weights(students[0].get_weights())
    live = RunFolder(tmp_path / "live", {})
    still = dataclasses.replace(CONFIG, learning_rate=0.0)
    found = []
    for trained, folder, cache_dir in zip(students, (live, cached), (None, cache), strict=True):
        terms = make_terms("minilm", teacher, trained, relation_weight=0.0)
        owner = Teacher([teacher], tokenizer, cache_dir=cache_dir)
        distil(owner, trained, texts, still, folder, terms)
        found.append([epoch["attention_loss"] for epoch in folder.metrics()])
    assert found[1] == pytest.approx(found[0], rel=1e-3) and min(found[0]) > 1e-4
    shards = {path: path.stat().st_mtime_ns for path in cache.glob("*.safetensors")}
    assert shards
    with pytest.raises(InputError, match="stores the teacher's outputs for whole texts, but mask"):
        masked = UnlabelledTexts(encodings, Masking.from_tokenizer(tokenizer, 0.3))
        distil(owner, students[1], masked, still, cached, [])
    with pytest.raises(InputError, match="cached was trained with cache_dir; do so to go on"):
        owner = Teacher([teacher], tokenizer)
        distil(owner, students[1], texts, still, cached, terms)

    with pytest.raises(InputError, match="no masked language model"):
        load_general_teacher(tmp_path / "encoder", predicts=True)
    terms = make_terms("distilbert", teacher, student, MaskedLM())
    with pytest.raises(InputError, match="Masked tokens are to be predicted, but `masking` is"):
        distil(owner, student, texts, CONFIG, run, terms, MaskedLM())
