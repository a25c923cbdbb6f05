"""Run recipes as `tfnlp NAME`: the same as `python -m recipes.NAME`.

    tfnlp finetune_classifier --train=train.tsv --dev=dev.tsv --output_dir=runs/teacher
    tfnlp finetune_classifier --help

Completion of names and flags, in bash and, after `bashcompinit`, in zsh:

    eval "$(tfnlp --completion)"
"""

import ast
import difflib
import importlib
import pathlib
import runpy
import sys

import tfnlp
from recipes.shell.command_line import pipe_may_close, recipe_flags

# The recipes by purpose, in the order of a project.
GROUPS = {
    "Fine-tune a model": (
        "finetune_classifier",
        "finetune_regression",
        "finetune_tagger",
        "finetune_answerer",
        "finetune_chooser",
        "finetune_embedder",
        "finetune_few_shot",
    ),
    "Distil it into a small one": (
        "distill_classifier",
        "distill_regression",
        "distill_tagger",
        "distill_answerer",
        "distill_chooser",
        "distill_embedder",
        "find_student",
        "measure_students",
        "make_static_vectors",
        "distill_general",
        "augment",
        "prune_vocabulary",
    ),
    "Put it on a phone": ("export_tflite", "benchmark_tflite", "frontier"),
    "Use a model": (
        "predict",
        "similar_texts",
        "rerank",
        "extract_features",
        "look_at_attention",
        "pictures",
    ),
    "Learn from text without labels": (
        "train_tokenizer",
        "prepare_corpus",
        "pretrain",
        "train_lm",
        "evaluate_lm",
        "average_checkpoints",
    ),
    "Generate and translate": (
        "generate",
        "prompt",
        "train_translator",
        "translate",
        "score_text",
    ),
    "Compare with classical methods": (
        "baseline_classifier",
        "baseline_lm",
        "train_word_vectors",
        "evaluate_word_vectors",
    ),
    "Use a knowledge graph": ("train_graph_vectors", "evaluate_graph_vectors", "train_kagnet"),
    "Try variants, or see the whole road": ("sweep", "demo"),
}
NAMES = [name for names in GROUPS.values() for name in names]
COMPLETION = """_tfnlp() {
  local words current="${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then words="$(tfnlp --words)"
  else words="$(tfnlp --words "${COMP_WORDS[1]}" 2>/dev/null)"; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [[ "${COMPREPLY[0]}" == *= ]] && compopt -o nospace
}
complete -o default -F _tfnlp tfnlp"""


def main():
    with pipe_may_close():
        run(*(sys.argv[1:] or ["--help"]))


def run(name, *arguments):
    """Print what an option asks for, or run a recipe."""
    if name in ("--help", "-h", "help"):
        print(overview())
    elif name in ("--version", "version"):
        print(f"tfnlp {tfnlp.__version__}")
    elif name == "--completion":
        print(COMPLETION)
    elif name == "--words" and not arguments:
        print(*NAMES)
    elif name == "--words" and arguments[0] in NAMES:
        print(*flag_words(arguments[0]))
    elif name in NAMES:
        del sys.argv[1]
        runpy.run_module(f"recipes.{name}", run_name="__main__", alter_sys=True)
    else:
        alike = difflib.get_close_matches(name, NAMES, n=1)
        advice = f"did you mean {alike[0]}?" if alike else "`tfnlp --help` lists them."
        print(f"Error: there is no recipe {name}; {advice}", file=sys.stderr)
        sys.exit(2)


def overview():
    """Return the recipes by groups, each with the first sentence of its docstring."""
    width = max(map(len, NAMES)) + 4
    lines = ["Usage: tfnlp RECIPE --flag=value ...; `tfnlp RECIPE --help` explains its flags."]
    for title, names in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:{width}}{summary(name)}" for name in names)]
    return "\n".join(lines)


def summary(name):
    """Return the first line of a recipe's docstring, which is read and not imported."""
    source = (pathlib.Path(__file__).parents[1] / f"{name}.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)).partition("\n")[0].removesuffix(".")


def flag_words(name):
    """Return the flags of a recipe as words to complete."""
    importlib.import_module(f"recipes.{name}")
    flags = recipe_flags().values()
    return sorted(f"--{flag.name}" if flag.boolean else f"--{flag.name}=" for flag in flags)


if __name__ == "__main__":
    main()
