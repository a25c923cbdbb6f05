"""Each option of a training learns what the training without it learns, on real sentences.

`ALIKE` and `NEARLY` are the table: of each option the trainings whose code it meets. Mirrored
training is in `test_strategy.py`, killed runs are where each training is tested.
"""

import collections.abc
import dataclasses
import functools

import keras
import numpy as np
import pytest

from distill.compression import Clusterer, ClusteringConfig, Pruner, PruningConfig
from distill.learning import Distiller, make_student, make_terms
from tfnlp.configs import config_by_name
from tfnlp.corpora import CorpusSettings, prepare_corpus
from tfnlp.layers import fake_quantize
from tfnlp.models import build_model
from tfnlp.objectives import (
    CausalLM,
    Corpus,
    MaskedLM,
    PermutationLM,
    ReplacedTokens,
    ShardedCorpus,
)
from tfnlp.tasks import Classification, ParallelTexts, Regression, Tagging, Translation
from tfnlp.text import LengthBatches, read_examples, train_wordpiece
from tfnlp.training import FineTuner, TrainingConfig, compile_model, start_models
from tfnlp.training.experiments.pretraining import Pretrainer

LENGTH, ROWS, STEPS = 16, 8, 20
SIZES = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}
SIZES["initializer_range"] = 0.1
CONFIG = TrainingConfig(batch_size=ROWS, learning_rate=5e-3, warmup_steps=0, schedule="constant")


@pytest.fixture(scope="module")
def texts(data_dir):
    """Sentences of SST-2, their labels, and a tokenizer learned from them."""
    examples = read_examples(data_dir / "sst2/dev.tsv")
    sentences = examples.texts[:32]
    return sentences, examples.labels[:32], train_wordpiece(sentences, 200)


def small(family, tokenizer, **ids):
    config = config_by_name(family, vocabulary_size=tokenizer.vocabulary_size, **SIZES, **ids)
    rates = {name: 0.0 for name in vars(config) if "dropout" in name and vars(config)[name]}
    return dataclasses.replace(config, **rates)


def finetuning(task, labels_of, texts, **options):
    sentences, labels, tokenizer = texts
    encodings = tokenizer.encode(sentences, max_length=LENGTH)
    data = LengthBatches(encodings, ROWS, labels_of(encodings, labels), shuffle=True)
    model = build_model(small("bert", tokenizer), task.kind.head, task.num_classes, **options)
    return FineTuner(model, task), data


def pretraining(objective, family, texts, corpus=None, **options):
    sentences, _, tokenizer = texts
    corpus = corpus or Corpus.from_documents(
        [[np.array(tokenizer.encode_plain(sentence))] for sentence in sentences]
    )
    data = objective.batches(corpus, tokenizer, ROWS, LENGTH)
    models = start_models(objective, small(family, tokenizer), **options)
    trained = objective.trained(models if len(models) > 1 else models["model"])
    return Pretrainer(objective, trained), data


def distillation(texts):
    teacher, data = finetuning(CLASSES, lambda _, labels: labels, texts)
    student = make_student(teacher.model, num_layers=1)
    terms = make_terms("logits", teacher.model, student, CLASSES)
    return Distiller(student, CLASSES, terms, teacher.model), data


def translation(texts):
    sentences, _, tokenizer = texts
    special = {"pad_token_id": 0, "start_token_id": 0, "end_token_id": 3}
    config = small("transformer", tokenizer, **special)
    model = build_model(config, "sequence_to_sequence")
    pairs = ParallelTexts(sentences, [sentence.upper() for sentence in sentences])
    data = TRANSLATION.batches(pairs, tokenizer, config, ROWS * LENGTH, LENGTH)
    return Pretrainer(TRANSLATION, model), data


CLASSES, TRANSLATION = Classification(["negative", "positive"]), Translation(too_long="cut")
TRAININGS = {
    "classifier": functools.partial(finetuning, CLASSES, lambda _, labels: labels),
    "regression": functools.partial(
        finetuning, Regression(), lambda rows, _: rows.lengths / LENGTH
    ),
    "tagger": functools.partial(
        finetuning,
        Tagging(["even", "odd"]),
        lambda rows, _: [[i % 2 for i in row.token_ids] for row in rows],
    ),
    "distillation": distillation,
    "masked_lm": functools.partial(pretraining, MaskedLM(), "bert"),
    "replaced_tokens": functools.partial(pretraining, ReplacedTokens(), "electra"),
    "causal_lm": functools.partial(pretraining, CausalLM(), "gpt2"),
    "permutation_lm": functools.partial(pretraining, PermutationLM(), "xlnet"),
    "translation": translation,
}


@dataclasses.dataclass(frozen=True)
class Option:
    """Changes of a training: settings, how its model is built, a policy, and what prepares it."""

    settings: dict = dataclasses.field(default_factory=dict)
    build: dict = dataclasses.field(default_factory=dict)
    policy: str = "float32"
    prepare: collections.abc.Callable = lambda model, data: None


def trace_each_block(model, data):
    model.fit = functools.partial(keras.Model.fit, model)


def read_by_a_process(model, data):
    data.processes = 1


def prune(model, data):
    model.compressor = Pruner(model, PruningConfig(end_step=STEPS // 2), STEPS)


def cluster(model, data):
    model.compressor = Clusterer(model, ClusteringConfig(clusters=64))


PARTS, RECOMPUTED = {"accumulation_steps": 4}, {"gradient_checkpointing": True}
# In parts and recomputed, of which XLA compiles the loop.
XLA = {"fixed_length": True, "xla": True} | PARTS | RECOMPUTED
ALIKE = {
    "parts": (Option(PARTS), "tagger", "masked_lm", "translation"),
    "recomputed": (Option(RECOMPUTED), "classifier", "permutation_lm"),
    "blocks": (Option(build={"block_size": 4}), "classifier", "causal_lm"),
    "fixed_length": (Option({"fixed_length": True}), "tagger"),
    "averages": (Option({"ema_decay": 0.5}), "tagger"),
    "each_traced": (Option(prepare=trace_each_block), "regression"),
    "process": (Option(prepare=read_by_a_process), "replaced_tokens"),
}
HALF = "mixed_bfloat16"
NEARLY = {
    "half": (Option(policy=HALF), "distillation", "masked_lm", "translation"),
    "half_in_parts": (Option(PARTS, policy=HALF), "masked_lm"),
    "quantized": (Option(prepare=lambda model, data: fake_quantize(model)), "distillation"),
    "pruned": (Option(prepare=prune), "tagger"),
    "clustered": (Option(prepare=cluster), "tagger"),
    "xla": (Option(XLA), "classifier"),
}


def cases(table):
    return [
        pytest.param(training, option, id=f"{name}-{training}")
        for name, (option, *trainings) in table.items()
        for training in trainings
    ]


def losses(training, texts, option):
    """Return the loss of each step, (STEPS,), and the weights before and after."""
    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy(option.policy)
    model, data = TRAININGS[training](texts, **option.build)
    settings = dataclasses.replace(CONFIG, **option.settings)
    if settings.fixed_length:
        data.fixed_length = LENGTH
    option.prepare(model, data)
    compile_model(settings, model, STEPS)
    before = [w.numpy() for w in model.trainable_weights]
    # Epochs of one step, whose loss is the epoch's.
    epochs = {"epochs": STEPS, "steps_per_epoch": 1, "shuffle": False, "verbose": 0}
    history = model.fit(data.dataset().repeat(), **epochs).history
    return np.array(history["loss"]), before, [w.numpy() for w in model.trainable_weights]


@pytest.fixture(scope="module")
def base(texts):
    """The losses of a training without options, which fall: `base(training)`."""

    @functools.cache
    def losses_of(training):
        base_losses, *_ = losses(training, texts, Option())
        assert base_losses[-4:].mean() < 0.95 * base_losses[:4].mean()
        return base_losses

    return losses_of


@pytest.mark.parametrize("training, option", cases(ALIKE))
def test_an_option_of_memory_or_speed_leaves_each_step_as_it_is(training, option, texts, base):
    np.testing.assert_allclose(losses(training, texts, option)[0], base(training), rtol=3e-4)


@pytest.mark.parametrize("training, option", cases(NEARLY))
def test_an_option_that_rounds_learns_most_of_what_the_base_learns(training, option, texts, base):
    rounded, exact = losses(training, texts, option)[0], base(training)
    assert rounded[0] == pytest.approx(exact[0], rel=0.05)
    first, last = (part.mean() for part in (exact[:4], exact[-4:]))
    assert (first - rounded[-4:].mean()) / (first - last) == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize("training", ["tagger", "masked_lm"])
def test_no_weight_moves_without_a_rate(training, texts):
    _, before, after = losses(training, texts, Option({"learning_rate": 1e-9}))
    assert max(np.abs(a - b).max() for a, b in zip(before, after, strict=True)) < 1e-7


def test_a_corpus_on_disk_is_learned_as_one_in_memory(texts, base, tmp_path):
    sentences, _, tokenizer = texts
    (tmp_path / "sentences.txt").write_text("\n".join(sentences), encoding="utf-8")
    settings = CorpusSettings("lines", sentences="lines")
    prepare_corpus([tmp_path / "sentences.txt"], tokenizer, tmp_path / "corpus", settings)
    option = Option(build={"corpus": ShardedCorpus(tmp_path / "corpus")})
    np.testing.assert_array_equal(losses("masked_lm", texts, option)[0], base("masked_lm"))
