"""What recipes read and make of their flags: settings, columns, splits and searches."""

import ast

import pytest

PROGRAM = """
import sys
import recipes.{recipe}
import recipes.flags.{module}_flags as m
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
PAIRS = "--train={d}/pairs.tsv --dev={d}/pairs.tsv --output_dir={d}/run"
# What is given to each recipe beside the flags of a case.
GIVEN = {
    "finetune_classifier": CLASSES,
    "distill_classifier": f"{CLASSES} --teacher_dir=t",
    "finetune_embedder": PAIRS,
    "train_translator": PAIRS,
    "finetune_tagger": "--train={d}/tags.conll --dev={d}/dev.conll --output_dir={d}/run",
    "generate": "--model_dir=m --text=a",
    "pretrain": "--corpus={d}/lines.txt --output_dir={d}/run",
}
SPLITS = "m.read_labelled()"
SCORES = "m.read_text_groups(m.VectorSettings(loss='{}'))['train'].scores"
TEACHERS = "(m.layer_map(), m.compares_tokens(), m.teacher_dirs(), m.teacher_weights())"
SEARCH = "m.search_of_flags('continuations')"


def attributes(of, *names):
    return f"[getattr(x, name) for x in [{of}] for name in {names}]"


# (recipe, module, flags, what is looked at, what it is).
CASES = [
    ("finetune_classifier", "task", "", f"{SPLITS}['train'].labels", [1, 0, 1]),
    (
        *("finetune_classifier", "task", "--further_dev=web={d}/more.tsv --test={d}/more.tsv"),
        f"{{k: len(v) for k, v in {SPLITS}.items()}}",
        {"train": 3, "dev": 1, "dev_web": 1, "test": 1},
    ),
    (
        *("finetune_classifier", "task", "--labels=good,bad"),
        f"[x.labels for x in {SPLITS}.values()]",
        [[0, 1, 0], [1]],
    ),
    (
        *("finetune_classifier", "task", "--threshold=0.75 --none_label=no"),
        attributes("m.read_classification()[0].decision", "threshold", "none_label"),
        [0.75, "no"],
    ),
    (
        *("finetune_classifier", "task", "--positive_label=bad --class_weights=bad=3"),
        attributes("m.read_classification()[0]", "positive_label", "linear")
        + " + [m.read_classification()[0].class_loss.class_weights]",
        ["bad", False, (3.0, 1.0)],
    ),
    (
        *("finetune_classifier", "task"),
        "--train={d}/sets.tsv --dev={d}/sets.tsv --multi_label --label_separator=| "
        "--threshold=0.25 --baseline",
        attributes("m.read_classification()[0]", "label_names", "separator", "linear")
        + " + m.read_classification()[0].thresholds.tolist()",
        [["good", "new"], "|", True, 0.25, 0.25],
    ),
    (
        *("finetune_classifier", "task", "--label_columns=bad,good --probability_weight=0.5"),
        f"({SPLITS}['train'].probabilities.tolist(), {SPLITS}['dev'].labels)",
        ([[0.125, 0.875], [0.75, 0.25], [0.0, 1.0]], [0]),
    ),
    (
        *("distill_classifier", "task", "--labels=good,bad"),
        "m.read_labelled(['LABEL_0', 'LABEL_1'])['train'].label_names",
        ["good", "bad"],
    ),
    (
        *("distill_classifier", "task", "--labels=good,bad --label_columns=bad,good"),
        "[(x.label_names, x.probabilities.tolist()) "
        "for x in [m.read_labelled(['LABEL_0', 'LABEL_1'])['train']]]",
        [(["good", "bad"], [[0.75, 0.25], [0.5, 0.5], [1.0, 0.0]])],
    ),
    ("finetune_embedder", "task", "", SCORES.format("cosine"), [1.5]),
    ("finetune_embedder", "task", "", SCORES.format("ranking"), None),
    ("finetune_embedder", "task", "--score_column=n", SCORES.format("cosent"), [2.0]),
    (
        *("finetune_embedder", "task", "--query_prompt=q --document_prompt=q"),
        "m.read_prompts(None)",
        (("q", "q"), {"prompts": {"query": "q", "document": "q"}, "default_prompt": "query"}),
    ),
    (
        *("finetune_embedder", "task", "--document_prompt=d", "m.read_prompts(None)"),
        (("", "d"), {"prompts": {"document": "d"}, "default_prompt": None}),
    ),
    (
        *("finetune_tagger", "task", "--stride=5"),
        "[(t.stride, s['train'].tags, s['dev'].tags, 'words' in t.settings) "
        "for t, s in [m.read_tagging(None, 'word')]]",
        [(5, [["O", "B-x", "O"]], [["O"]], True)],
    ),
    (
        *("distill_classifier", "distillation", "--layer_map=0,2", TEACHERS),
        ([0, 2], False, ["t"], None),
    ),
    (
        *("distill_classifier", "distillation"),
        "--teacher_dir=t,u --teacher_weights=1,3 --attention_weight=0.1",
        TEACHERS,
        ("uniform", True, ["t", "u"], (1.0, 3.0)),
    ),
    (
        *("distill_classifier", "distillation", "--size=bert_tiny"),
        "[m.student_arguments()[name] for name in ('num_layers', 'size', 'initialize')]",
        [None, "bert_tiny", True],
    ),
    (
        *("distill_classifier", "distillation", "--num_layers=2 --noinitialize"),
        "[m.student_arguments()[name] for name in ('num_layers', 'family', 'initialize')]",
        [2, None, False],
    ),
    (
        *("finetune_classifier", "training"),
        "--model_dir=m --recipe=electra_small --learning_rate=0.5",
        attributes("m.training_config()", "learning_rate", "layer_decay", "epochs"),
        [0.5, 0.8, 3],
    ),
    (
        *("distill_classifier", "training", "--cache_dir=c --log_steps=5"),
        "[m.decisive_flags().get(n) for n in ('cache_dir', 'dev', 'log_steps', 'output_dir')]",
        ["given", "{d}/more.tsv", None, None],
    ),
    ("generate", "generation", "", f"type({SEARCH}).__name__ == 'Greedy'", True),
    (
        *("generate", "generation", "--search=sample --continuations=3"),
        attributes(SEARCH, "texts"),
        [3],
    ),
    (
        *("generate", "generation", "--search=beam --beams=4"),
        attributes(SEARCH, "beams", "best"),
        [4, 1],
    ),
    (
        *("train_translator", "translator_model", "--hidden_dim=24"),
        attributes(
            "m.scratch_config(vocabulary_size=9, pad_token_id=0, end_token_id=1)",
            "intermediate_dim",
        ),
        [96],
    ),
    (
        *("pretrain", "data", "--documents=lines"),
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
    program = folder / "values"
    for recipe, module, flags, values, expected in CASES:
        text = PROGRAM.format(recipe=recipe, module=module, values=values)
        program.with_suffix(".py").write_text(text)
        words = f"{GIVEN[recipe]} {flags}".format(d=folder).split()
        said = run(program, *words).stdout.rpartition("= ")[2]
        due = ast.literal_eval(repr(expected).replace("{d}", str(folder)))
        assert ast.literal_eval(said) == due, (flags, values)
