"""Fine-tunes a model for extractive question answering, as in SQuAD.

    python -m recipes.finetune_answerer --model_dir=MODEL --train=xquad_en/train.json \\
        --dev=xquad_en/dev.json --max_length=256 --output_dir=runs/answers

Files are in the JSON of SQuAD 1.1 or, with --null_answers, 2.0. Long texts are read in windows.
The scores are F1 and exact match by SQuAD's rules; the best answers to each question of --dev
go to OUTPUT_DIR/n_best.json, with their offsets in the text.
"""

from absl import flags

from recipes.flags import data_flags, dataclass_flags, task_flags
from recipes.shell import entry_point, finetuning_run
from tfnlp import tasks, training

FLAGS = flags.FLAGS
task_flags.define_answerer_flags()
data_flags.define_split_flags()
finetuning_run.define_flags()


def main():
    finetuning_run.check_flags()
    splits = task_flags.read_questions()
    train = splits["train"]
    task = dataclass_flags.read(tasks.QuestionAnswering)
    texts = [*dict.fromkeys(train.contexts), *train.questions]
    finetuning_run.finetune(task, texts, splits)
    sizes = FLAGS.max_length, FLAGS.n_best, FLAGS.block_size
    training.write_n_best(task, FLAGS.output_dir, splits["dev"], *sizes)


if __name__ == "__main__":
    entry_point.run(main)
