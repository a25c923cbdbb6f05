"""What recipes read and make of their flags: settings, columns, splits and searches."""

import ast

import pytest

PROGRAM = """
import sys
import recipes.{recipe}
import recipes.flags.{module} as m
from recipes.shell import command_line
command_line.parse(sys.argv)
print("=", {values})
"""
FILES = {
    "pairs.tsv": "sentence1\tsentence2\tscore\tn\na\tb\t1.5\t2\n",
    "labels.tsv": "sentence\tlabel\tbad\tgood\na\tgood\t1\t3\nb\tbad\t0.5\t0.5\nc\tgood\t0\t1\n",
    "more.tsv": "sentence\tlabel\nd\tbad\n",
    "sets.tsv": "sentence\tlabel\na\tgood|new\nb\t\n",
    "tags.conll": "the\tO\nfilm\tB-x\n.\tO\n\n",
    "dev.conll": "a\tO\n\n",
    "lines.txt": "one\n\n \ntwo\nthree\n",
}
CLASSES = "--train={d}/labels.tsv --dev={d}/more.tsv --output_dir={d}/run"
GROUPS = "--train={d}/pairs.tsv --dev={d}/pairs.tsv --output_dir={d}/run"
STUDENT = f"{CLASSES} --teacher_dir=t"
TAGS = "--train={d}/tags.conll --dev={d}/dev.conll --output_dir={d}/run"
TRANSLATOR = "--train={d}/pairs.tsv --dev={d}/pairs.tsv --output_dir={d}/run"
GENERATOR = "--model_dir=m --text=a"
CORPUS = "--corpus={d}/lines.txt --output_dir={d}/run"

TASK, SPLITS = "m.read_classification()[0]", "m.read_labelled()"
SCORES = "m.read_text_groups(m.VectorSettings(loss='{}'))['train'].scores"
CASES = [
    # Labels, their weights and the answers that are kept.
    ("finetune_classifier", "task_flags", CLASSES, f"{SPLITS}['train'].labels", [1, 0, 1]),
    ("finetune_classifier", "task_flags", CLASSES, f"[*{SPLITS}]", ["train", "dev"]),
    (
        *("finetune_classifier", "task_flags"),
        CLASSES + " --further_dev=web={d}/more.tsv --test={d}/more.tsv",
        f"{{k: len(v) for k, v in {SPLITS}.items()}}",
        {"train": 3, "dev": 1, "dev_web": 1, "test": 1},
    ),
    (
        *("finetune_classifier", "task_flags", CLASSES + " --labels=good,bad"),
        f"[x.labels for x in {SPLITS}.values()]",
        [[0, 1, 0], [1]],
    ),
    (
        *("finetune_classifier", "task_flags"),
        CLASSES + " --threshold=0.75 --none_label=no --positive_label=bad --class_weights=bad=3",
        f"[({TASK}.decision.threshold, {TASK}.decision.none_label), {TASK}.positive_label, "
        f"{TASK}.class_loss.class_weights, {TASK}.linear]",
        [(0.75, "no"), "bad", (3.0, 1.0), False],
    ),
    (
        *("finetune_classifier", "task_flags"),
        "--train={d}/sets.tsv --dev={d}/sets.tsv --multi_label --label_separator=| "
        "--threshold=0.25 --baseline --output_dir=r",
        f"[{TASK}.label_names, {TASK}.separator, {TASK}.thresholds.tolist(), {TASK}.linear]",
        [["good", "new"], "|", [0.25, 0.25], True],
    ),
    (
        *("finetune_classifier", "task_flags"),
        CLASSES + " --label_columns=bad,good --probability_weight=0.5",
        f"({SPLITS}['train'].probabilities.tolist(), {SPLITS}['dev'].labels)",
        ([[0.125, 0.875], [0.75, 0.25], [0.0, 1.0]], [0]),
    ),
    # Classes without names take those of the file, if these are numbers.
    (
        *("distill_classifier", "task_flags", STUDENT + " --labels=good,bad"),
        "m.read_labelled(['LABEL_0', 'LABEL_1'])['train'].label_names",
        ["good", "bad"],
    ),
    # Columns of scores, by the loss.
    ("finetune_embedder", "task_flags", GROUPS, SCORES.format("cosine"), [1.5]),
    ("finetune_embedder", "task_flags", GROUPS, SCORES.format("ranking"), None),
    (
        *("finetune_embedder", "task_flags", GROUPS + " --score_column=n"),
        SCORES.format("cosent"),
        [2.0],
    ),
    (
        *("finetune_embedder", "task_flags", GROUPS + " --query_prompt=q --document_prompt=q"),
        "m.read_prompts(None)",
        (("q", "q"), {"prompts": {"query": "q", "document": "q"}, "default_prompt": "query"}),
    ),
    (
        *("finetune_embedder", "task_flags", GROUPS + " --document_prompt=d"),
        "m.read_prompts(None)",
        (("", "d"), {"prompts": {"document": "d"}, "default_prompt": None}),
    ),
    # Tags of the training file hold for the others; words alone are split off.
    (
        *("finetune_tagger", "task_flags", TAGS + " --stride=5"),
        "[(t.stride, s['train'].tags, s['dev'].tags, t.settings.get("words") is None) for unit in "
        "('word', 'character') for t, s in [m.read_tagging(None, unit)]]",
        [
            (5, [["O", "B-x", "O"]], [["O"]], False),
            (5, [["O", "B-x", "O"]], [["O"]], True),
        ],
    ),
    # The student and what it learns from.
    (
        *("distill_classifier", "distillation_flags", STUDENT + " --layer_map=0,2"),
        "(m.layer_map(), m.compares_tokens(), m.teacher_dirs(), m.teacher_weights())",
        ([0, 2], False, ["t"], None),
    ),
    (
        *("distill_classifier", "distillation_flags"),
        CLASSES + " --teacher_dir=t,u --teacher_weights=1,3 --attention_weight=0.1",
        "(m.layer_map(), m.compares_tokens(), m.teacher_dirs(), m.teacher_weights())",
        ("uniform", True, ["t", "u"], (1.0, 3.0)),
    ),
    (
        *("distill_classifier", "distillation_flags", STUDENT + " --size=bert_tiny"),
        "[m.student_arguments()[name] for name in ('num_layers', 'size', 'initialize')]",
        [None, "bert_tiny", True],
    ),
    (
        *("distill_classifier", "distillation_flags", STUDENT + " --num_layers=2 --noinitialize"),
        "[m.student_arguments()[name] for name in ('num_layers', 'family', 'initialize')]",
        [2, None, False],
    ),
    # Trainings: what is published holds where nothing is given.
    (
        *("finetune_classifier", "training_flags"),
        CLASSES + " --model_dir=m --recipe=electra_small --learning_rate=0.5",
        "[getattr(m.training_config(), n) for n in ('learning_rate', 'layer_decay', 'epochs')]",
        [0.5, 0.8, 3],
    ),
    (
        *("distill_classifier", "training_flags", STUDENT + " --cache_dir=c --log_steps=5"),
        "[m.decisive_flags().get(n) for n in ('cache_dir', 'dev', 'log_steps', 'output_dir')]",
        ["given", "{d}/more.tsv", None, None],
    ),
    # Searches.
    (
        *("generate", "generation_flags", GENERATOR),
        "type(m.search_of_flags('continuations')).__name__ == 'Greedy'",
        True,
    ),
    (
        *("generate", "generation_flags", GENERATOR + " --search=sample --continuations=3"),
        "vars(m.search_of_flags('continuations'))['texts']",
        3,
    ),
    (
        *("generate", "generation_flags", GENERATOR + " --search=beam --beams=4"),
        "[vars(m.search_of_flags('continuations'))[n] for n in ('beams', 'best')]",
        [4, 1],
    ),
    # Translators.
    (
        *("train_translator", "translator_model_flags", TRANSLATOR + " --hidden_dim=24"),
        "(lambda c: (c.hidden_dim, c.intermediate_dim))"
        "(m.scratch_config(vocabulary_size=9, pad_token_id=0, start_token_id=0, end_token_id=1))",
        (24, 96),
    ),
    # Documents that hold text.
    (
        *("pretrain", "data_flags", CORPUS + " --documents=lines"),
        "[m.read_documents(m.FLAGS.corpus, most) for most in (None, 2)]",
        [["one", "two", "three"], ["one", "two"]],
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def test_flags_become_what_they_say(run, folder):
    for recipe, module, flags, values, expected in CASES:
        program = folder / "values"
        text = PROGRAM.format(recipe=recipe, module=module, values=values)
        program.with_suffix(".py").write_text(text)
        said = run(program, *flags.format(d=folder).split()).stdout.rpartition("= ")[2]
        due = ast.literal_eval(repr(expected).replace("{d}", str(folder)))
        assert ast.literal_eval(said) == due, (flags, values)
