"""Flags of a fine-tuning, and its run."""

from absl import flags

from recipes.flags import compression_flags, knowledge_flags, model_flags, training_flags
from recipes.shell.command_line import group, hide
from tfnlp import training
from tfnlp.training.step.published_settings import FINE_TUNING
from tfnlp.utils.errors import InputError

FLAGS = flags.FLAGS


def define_flags():
    """Define the flags of the model, the training and its compression."""
    model_flags.define_model_flags()
    model_flags.define_pooling_flags()
    model_flags.define_embeddings_flag()
    training_flags.define_training_flags(epochs=3, learning_rate=5e-5)
    training_flags.define_lora_flags()
    training_flags.define_recipe_flag(FINE_TUNING)
    knowledge_flags.define_entity_flags()
    define_adversarial_flags()
    compression_flags.define_training_flags()


@group("Adversarial training")
def define_adversarial_flags():
    """Define the flags of virtual adversarial fine-tuning (SiFT)."""
    flags.DEFINE_float(
        "adversarial_weight",
        0.0,
        "Weight of the adversarial loss (SiFT: DeBERTa, section 4); 0: no such loss. It triples "
        "the time of a step.",
        0,
    )
    flags.DEFINE_float(
        "adversarial_step",
        1e-4,
        "Its gradient step, in standard deviations of an embedding. DeBERTa's 1e-4 changes "
        "nothing that can be measured; 0.5 does.",
        0,
    )
    hide("adversarial_weight", "adversarial_step")


def check_flags():
    """Raise an InputError for conflicting flags of a fine-tuning."""
    compression_flags.check_training_flags()
    model_flags.check_start_flags()
    if not FLAGS.model_dir and model_flags.scratch_config().reads_characters:
        raise InputError(
            f"family={FLAGS.family} is not trained by a task, which would read random states; "
            "pretrain it (pretrain --objective=bidirectional_lm) and give its folder as model_dir."
        )
    training_flags.training_config()


def finetune(task, texts, splits, experiment=None):
    """Start the run of the flags, and fine-tune the model of the flags for a task.

    Args:
        task: see `tfnlp.tasks`.
        texts: the training texts, to train a tokenizer on.
        splits: {name: examples}, from `data_flags.read_splits`.
        experiment: a child of `FineTuning`, which it is if None.
    """
    if not FLAGS["monitor"].using_default_value:
        task.select_by(FLAGS.monitor)
    if not FLAGS.model_dir:
        model_flags.check_head(task)
    entities = knowledge_flags.read_entities()
    config, run = training_flags.start_run()
    with training.make_strategy(FLAGS.strategy).scope():
        model, tokenizer = model_flags.make_model(task, texts)
        model_flags.keep_tokenizer(run, tokenizer)
        tokenizer = knowledge_flags.find_entities(tokenizer, entities)
        model = knowledge_flags.add_entities(model, entities)
        model_flags.check_fit(model, tokenizer)
        regularizer = make_regularizer(model, task)
        with compression_flags.rounding(model):
            (experiment or training.FineTuning)(
                task,
                model,
                tokenizer,
                data=training.Splits.from_parts(splits, FLAGS.max_length),
                config=config,
                run=run,
                regularizer=regularizer,
                compress=compression_flags.compressor(),
            ).run_all()


def make_regularizer(model, task):
    """Return the `AdversarialRegularizer` of the flags, or None."""
    if not FLAGS.adversarial_weight:
        return None
    return training.AdversarialRegularizer(
        model, task.kind, FLAGS.adversarial_weight, FLAGS.adversarial_step, seed=FLAGS.seed
    )
