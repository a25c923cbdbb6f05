"""Fine-tunes a classifier from some texts of each label (SetFit, Tunstall et al. 2022).

    python -m recipes.finetune_few_shot --model_dir=all-MiniLM-L6-v2 --train=train.tsv \\
        --dev=dev.tsv --shots=8 --output_dir=runs/few_shot

The encoder learns from all pairs of the texts whether their labels are alike; then a logistic
regression of their vectors is the head. --model_dir is best an encoder of sentence vectors; of
any other one the mean of the states is trained. OUTPUT_DIR/best is a classifier for the other
recipes, and an encoder for sentence-transformers.
"""

from absl import flags

from recipes.flags import task_flags
from recipes.shell import entry_point, finetuning_run
from recipes.shell.command_line import group, hide, no_effect
from tfnlp import tasks, text, training

FLAGS = flags.FLAGS
task_flags.define_classification_data_flags()
with group("Data"):
    flags.DEFINE_integer(
        "shots", None, "Texts of each label to draw from --train, by --seed; all if not given.", 1
    )
task_flags.define_monitor_flag(("accuracy", "macro_f1", "matthews"), "accuracy")
task_flags.define_baseline_flag()
task_flags.define_pooling_flag()
finetuning_run.define_flags()
# Those of setfit 1.2.
for name, value in {"epochs": 1, "learning_rate": 2e-5, "batch_size": 16}.items():
    FLAGS.set_default(name, value)
# Of other texts and losses than those of the pairs.
UNUSED = ("multi_label", "label_columns", "pair_column", "adversarial_weight")
hide(*UNUSED)


def main():
    finetuning_run.check_flags()
    for name in UNUSED:
        if FLAGS[name].value:
            raise no_effect(name, "on the pairs of texts that are trained on")
    splits = task_flags.read_labelled()
    if FLAGS.shots:
        splits["train"] = text.draw_shots(splits["train"], FLAGS.shots, FLAGS.seed)
    task = tasks.Classification(splits["train"].label_names, linear=FLAGS.baseline)
    finetuning_run.finetune(task, splits["train"].texts, splits, training.FewShotTuning)


if __name__ == "__main__":
    entry_point.run(main)
