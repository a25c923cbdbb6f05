"""A student learns its teacher's vectors, of texts and of their translations."""

import itertools
import json

import keras
import numpy as np
import pytest

from tfnlp.checkpoints import load_model, read_config, save_model
from tfnlp.models import build_model
from tfnlp.pipelines import load_runner
from tfnlp.text import WordPieceTokenizer

ENGLISH = ["a", "fine", "film", "the", "plot", "is", "not", "dull"]
FRENCH = ["un", "bon", "livre", "la", "trame", "est", "pas", "ennuyeux"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture
def flags(one_layer, tmp_path):
    rng = np.random.default_rng(0)
    tokenizer = WordPieceTokenizer([*SPECIAL, *ENGLISH, *FRENCH])
    config = one_layer.__class__(**vars(one_layer) | {"vocabulary_size": 21})
    keras.utils.set_random_seed(3)
    teacher = build_model(config, "embedder")
    tokens = next(w for w in teacher.weights if w.path == "embeddings/token_table")
    tokens.assign(30 * tokens)  # so that texts differ
    save_model(teacher, tmp_path / "teacher", None, tokenizer)
    rows = [rng.integers(8, size=rng.integers(2, 6)) for _ in range(80)]
    texts = [[" ".join(words[i] for i in row) for row in rows] for words in (ENGLISH, FRENCH)]
    lines = ["en\tfr", *map("\t".join, zip(*texts, strict=True))]
    (tmp_path / "train.tsv").write_text("\n".join(lines))
    vectors = load_runner(tmp_path / "teacher").embed(texts[0])
    lines = ["sentence1\tsentence2\tscore"]
    lines += [
        f"{texts[0][i]}\t{texts[0][i + 1]}\t{vectors[i] @ vectors[i + 1]}" for i in range(0, 80, 2)
    ]
    (tmp_path / "dev.tsv").write_text("\n".join(lines))
    files = [f"--{name}={tmp_path / name}.tsv" for name in ("train", "dev")]
    files += [f"--teacher_dir={tmp_path / 'teacher'}", f"--output_dir={tmp_path / 'run'}"]
    return [*files, "--score_column=score", "--max_length=12", "--num_layers=1"]


def learn(run, *flags):
    return run("distill_embedder", *flags, "--epochs=20", "--batch_size=8", "--learning_rate=1e-2")


def test_a_narrower_student_gives_the_teachers_vectors(run, flags, tmp_path):
    how = ["--train_columns=en", "--hidden_dim=16", "--keep_tokens=16", "--matryoshka_dims=8"]
    learn(run, *flags, *how)
    figures = json.loads((tmp_path / "run/figures.json").read_text())
    assert figures["teacher_dev_spearman"] == pytest.approx(1, abs=1e-3)
    assert figures["dev_spearman"] > 0.9 and figures["dev_spearman_at_8"] > 0.7
    log = (tmp_path / "run/metrics.jsonl").read_text()
    assert '"val_task_loss"' in log and "label" not in log
    texts = ["the plot is fine", "a dull film", "not a film"]
    student, teacher = (
        load_runner(tmp_path / name).embed(texts) for name in ("run/best", "teacher")
    )
    assert student.shape == teacher.shape
    assert (student * teacher).sum(-1).min() > 0.9


def test_the_most_important_heads_are_kept(run, flags, tmp_path):
    how = ["--train_columns=en", "--keep_heads=1", "--keep_units=8", "--max_steps=1"]
    run("distill_embedder", *flags, *how)
    config = read_config(tmp_path / "run/best")
    assert (config.num_heads, config.intermediate_dim) == (1, 8)
    vectors = load_runner(tmp_path / "run/best").embed(["a fine film", "not dull"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-1), 1, rtol=1e-5)


def test_what_leaves_nothing_to_learn_is_told(refused, flags):
    weights = ["--soft_label_weight=0", "--similarity_weight=0"]
    assert "nothing to learn" in refused(
        "distill_embedder", *flags, "--train_columns=en", *weights
    )


def test_a_translation_gets_the_vector_of_its_original(run, flags, tmp_path):
    learn(run, *flags, "--train_columns=en,fr", "--translations", "--initialize=false")
    student, teacher = (load_runner(tmp_path / name) for name in ("run/best", "teacher"))
    vectors = teacher.embed(["the plot is fine", "a dull film"])
    same = (vectors * student.embed(["la trame est bon", "un ennuyeux livre"])).sum(-1)
    itself = (vectors * student.embed(["the plot is fine", "a dull film"])).sum(-1)
    assert min(*same, *itself) > 0.9
    # Without pairs to select by, texts are left out; an encoder without modules gets --pooling.
    save_model(load_model(tmp_path / "teacher", None), tmp_path / "x", None, teacher.tokenizer)
    models = [f"--{name}_dir={tmp_path / 'x'}" for name in ("teacher", "student")]
    (tmp_path / "texts.txt").write_text(
        "\n".join(map(" ".join, itertools.product(*[ENGLISH] * 3)))
    )
    files = [f"--train={tmp_path / 'texts.txt'}", f"--output_dir={tmp_path / 'run'}"]
    how = ["--pooling=first", "--max_length=12", "--max_steps=1", "--overwrite"]
    run("distill_embedder", *files, *models, *how)
    figures = json.loads((tmp_path / "run/figures.json").read_text())
    assert figures["teacher_dev_spearman"] == pytest.approx(1)
    pooling = json.loads((tmp_path / "run/best/1_Pooling/config.json").read_text())
    assert pooling["pooling_mode_cls_token"] and not pooling["pooling_mode_mean_tokens"]
