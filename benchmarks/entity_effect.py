"""Effect of entities beside the text (ERNIE): the same fine-tuning with and without them.

    python -m benchmarks.entity_effect --model_dir=MINILM --num_layers=2 --task=classifier \\
        --train=train.tsv --dev=dev.tsv --entity_vectors=runs/graph/entities.bin \\
        --graph=/usr/share/wordnet --format=wordnet --output_dir=runs/entities

All start from the first layers of the same BERT, with the same batches and schedule for each seed:
`text` reads the text alone, `entities` the vectors of its entities too, `shuffled` those of other
entities (unless --nocontrol), and with --corpus `denoised` was trained on it before by the
denoising objective. The score of a run is that of its best epoch. Each run's scores are kept, so
that the same command resumes where it was stopped.
"""

import functools
import pathlib

from absl import flags

from benchmarks import finetune_parity
from recipes.flags import knowledge_flags
from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_integer("num_layers", None, "First layers of the model to keep; all if not given.", 1)
flags.DEFINE_bool("control", True, "Also read the vectors of other entities.")
flags.DEFINE_string("corpus", None, "File of texts, to denoise entities on before.")
flags.DEFINE_integer("steps", 100, "Steps of denoising.", 1)
knowledge_flags.define_entity_flags()
flags.mark_flag_as_required("entity_vectors")


def main():
    entities = knowledge_flags.read_entities()
    entry_point.load_tensorflow()
    import numpy as np

    from tfnlp.utils.seed_statistics import Estimate

    lemmas, vectors = entities
    shuffled = lemmas, np.random.default_rng(0).permutation(vectors)
    starts = {
        "text": functools.partial(start, None),
        "entities": functools.partial(start, entities),
    }
    if FLAGS.control:
        starts["shuffled"] = functools.partial(start, shuffled)
    if FLAGS.corpus:
        starts["denoised"] = functools.partial(load_denoised, entities)
    task, train, dev = finetune_parity.read_task()

    def run(name):
        return finetune_parity.train_tfnlp(task, train, dev, name, start=starts[name])

    runs = {name: functools.partial(run, name) for name in starts}
    best = finetune_parity.best_scores("entities.json", runs)
    for name, values in best.items():
        score = Estimate.of(values)
        gain = Estimate.of(np.subtract(values, best["text"]))
        print(
            f"{name}: {task.monitor} {score.mean:.4f}, lowest {min(values):.4f}, highest "
            f"{max(values):.4f}; to text {gain.mean:+.4f}, standard error {gain.error or 0:.4f}"
        )


def start(entities, task):
    """Return the first layers of --model_dir, which read entities unless None; and a tokenizer."""
    from distill.learning import make_student
    from tfnlp.text import load_tokenizer

    model, _ = finetune_parity.load_start(task)
    model = make_student(model, FLAGS.num_layers, layer_map="first")
    tokenizer = knowledge_flags.find_entities(load_tokenizer(FLAGS.model_dir), entities)
    return knowledge_flags.add_entities(model, entities), tokenizer


def load_denoised(entities, task):
    """Return the model of the denoising, which the first call trains, and its tokenizer."""
    from tfnlp import objectives, training
    from tfnlp.checkpoints import load_model
    from tfnlp.knowledge import load_entity_tokenizer

    folder = pathlib.Path(FLAGS.output_dir) / "denoising"
    if not (folder / "best/config.json").exists():
        objective = objectives.DenoisingEntities()
        model, tokenizer = start(entities, objective.masked_lm)
        corpus = objectives.open_corpus(
            [FLAGS.corpus], tokenizer, "lines", text_column=FLAGS.text_column
        )
        config = training.PretrainingConfig(
            epochs=1, learning_rate=1e-4, steps_per_epoch=FLAGS.steps
        )
        training.Pretraining(
            objective,
            {"model": model},
            tokenizer,
            data=training.Splits(corpus, None, FLAGS.max_length),
            config=config,
            run=training.RunFolder(folder, {}, overwrite=True),
        ).run_all()
    best = folder / "best"
    return load_model(best, task.kind.head, task.num_classes), load_entity_tokenizer(best)


if __name__ == "__main__":
    entry_point.run(main)
