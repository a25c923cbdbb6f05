"""Fine-tunes a model whose vectors of texts are near each other where the texts mean alike.

    python -m recipes.finetune_embedder --model_dir=all-MiniLM-L6-v2 --train=questions.tsv \\
        --dev=dev.tsv --text_columns=question,answer --output_dir=runs/search

Each line has a text and one that belongs to it, and any number of columns of texts that do not.
The score is the search of each text's own second one among those of --dev (nDCG@10), beside BM25.

    python -m recipes.finetune_embedder --model_dir=all-MiniLM-L6-v2 --train=korsts/train.tsv \\
        --dev=korsts/dev.tsv --loss=cosent --output_dir=runs/likeness

Each line has two texts and a number, how alike they are. The score is Spearman's correlation of
the cosines with it. OUTPUT_DIR/best is a folder of sentence-transformers; export_tflite makes a
file of it.
"""

from absl import flags

from recipes.flags import data_flags, dataclass_flags, task_flags
from recipes.shell import entry_point, finetuning_run
from tfnlp import checkpoints, tasks
from tfnlp.tasks.vector_settings import VectorSettings

FLAGS = flags.FLAGS
task_flags.define_embedder_flags()
data_flags.define_split_flags()
finetuning_run.define_flags()


def main():
    finetuning_run.check_flags()
    settings = dataclass_flags.read(VectorSettings, num_texts=len(FLAGS.text_columns))
    splits = task_flags.read_text_groups(settings)
    known = checkpoints.read_task_settings(FLAGS.model_dir) if FLAGS.model_dir else {}
    prompts = read_prompts(known.get("prompts", {}))
    beginnings = prompts.get("query", ""), prompts.get("document", "")
    model_settings = {"prompts": prompts, "default_prompt": known.get("default_prompt")}
    if beginnings[0] and beginnings[0] == beginnings[1]:
        model_settings["default_prompt"] = "query"
    task = tasks.SentenceVectors(settings, beginnings, model_settings)
    texts = [text for group in splits["train"].texts for text in group]
    finetuning_run.finetune(task, texts, splits)


def read_prompts(known):
    """Return {name: beginning of texts} of the flags, else those known of --model_dir."""
    prompts = dict(known)
    if "passage" in prompts:  # as E5 calls it
        prompts.setdefault("document", prompts["passage"])
    for name in ("query", "document"):
        value = FLAGS[f"{name}_prompt"].value
        if value is not None:
            prompts[name] = value
    return prompts


if __name__ == "__main__":
    entry_point.run(main)
