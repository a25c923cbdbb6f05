"""Fine-tunes a model of any family to classify texts or pairs of texts.

From a Hugging Face folder:

    python -m recipes.finetune_classifier --model_dir=MiniLM-L6 --train=train.tsv \\
        --dev=dev.tsv --output_dir=runs/teacher

Without --model_dir, a model of any --family or --size starts from random weights, with a tokenizer
trained on the training texts (and --vocabulary_text), or that of --tokenizer_dir. --block_size
saves memory on long texts:

    python -m recipes.finetune_classifier --family=xlnet --num_layers=2 --hidden_dim=128 \\
        --train=train.tsv --dev=dev.tsv --max_length=1024 --block_size=256 --output_dir=runs/long

OUTPUT_DIR/best, the folder of the best epoch, loads with transformers and in the other recipes.
"""

from absl import flags

from recipes.flags import task_flags
from recipes.shell import entry_point, finetuning_run

FLAGS = flags.FLAGS
task_flags.define_classification_data_flags()
task_flags.define_classification_score_flags()
task_flags.define_baseline_flag()
finetuning_run.define_flags()


def main():
    finetuning_run.check_flags()
    task, splits = task_flags.read_classification()
    train = splits["train"]
    finetuning_run.finetune(task, train.texts + (train.pairs or []), splits)


if __name__ == "__main__":
    entry_point.run(main)
