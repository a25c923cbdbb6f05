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
from recipes.shell.command_line import no_effect
from tfnlp import tasks
from tfnlp.tasks.vector_settings import VectorSettings

FLAGS = flags.FLAGS
task_flags.define_embedder_flags()
data_flags.define_split_flags()
finetuning_run.define_flags()


def main():
    finetuning_run.check_flags()
    if FLAGS.adversarial_weight:
        raise no_effect("adversarial_weight", "on vectors, which are no probabilities")
    settings = dataclass_flags.read(VectorSettings, num_texts=len(FLAGS.text_columns))
    splits = task_flags.read_text_groups(settings)
    task = tasks.SentenceVectors(settings, *task_flags.read_prompts(FLAGS.model_dir))
    texts = [text for group in splits["train"].texts for text in group]
    finetuning_run.finetune(task, texts, splits)


if __name__ == "__main__":
    entry_point.run(main)
