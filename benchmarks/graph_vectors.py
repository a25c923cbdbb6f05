"""Link prediction on WordNet by TransE, DistMult and RotatE, and by PyKEEN's TransE.

    python -m benchmarks.graph_vectors --graph=/usr/share/wordnet --format=wordnet \\
        --output_dir=runs/graph_vectors

The graph is that of six relations among the synsets that have the most of them. All methods train
on the same triples and are scored on the same held-out ones, PyKEEN's model by PyKEEN's own
evaluator. Needs `.[benchmarks]`.
"""

import pathlib
import statistics

from absl import flags

from recipes.flags import knowledge_flags
from recipes.shell import entry_point

FLAGS = flags.FLAGS
knowledge_flags.define_graph_flags()
flags.DEFINE_string("output_dir", None, "Folder to write graph_vectors.json into.")
flags.DEFINE_integer("max_entities", 12_000, "Synsets.", 1)
flags.DEFINE_float("held_out", 0.05, "Share of the triples to score on.", 0, 1)
flags.DEFINE_integer("split_seed", 0, "Seed of the split.", 0)
flags.DEFINE_integer("epochs", 60, "Passes over the triples.", 1)
flags.DEFINE_integer("seeds", 3, "Seeds.", 1)
flags.mark_flags_as_required(["graph", "output_dir"])

RELATIONS = [
    *("hypernym", "instance_hypernym", "part_meronym", "member_meronym"),
    *("derivationally_related_form", "topic_domain"),
]
# The other settings are the defaults, which for TransE are PyKEEN's too.
SHARED = {"dim": 50, "negatives": 8, "batch_triples": 512, "learning_rate": 0.01}


def main():
    entry_point.load_tensorflow()
    from tfnlp import knowledge
    from tfnlp.utils.files import write_json

    graph = knowledge_flags.read_graph()
    graph = knowledge.select_triples(graph, RELATIONS, FLAGS.max_entities)
    split = knowledge.hold_out(graph, FLAGS.held_out, FLAGS.split_seed)
    print(len(graph.entities), "entities,", *map(len, split), "triples", flush=True)
    makers = {"pykeen": train_theirs} | {name: train_ours(name) for name in knowledge.METHODS}
    figures = {name: [] for name in makers}
    for seed in range(FLAGS.seeds):
        for name, make in makers.items():
            figures[name].append(make(graph, *split, seed))
            print(name, figures[name][-1], flush=True)
            write_json(pathlib.Path(FLAGS.output_dir) / "graph_vectors.json", figures)
    for name, rows in figures.items():
        means = (f"{key} {statistics.mean(row[key] for row in rows):.4f}" for key in rows[0])
        print(f"{name}:", ", ".join(means))


def train_ours(method):
    """Return the function that trains one of our methods and returns its scores."""

    def train(graph, triples, held_out, seed):
        from tfnlp import knowledge

        kind = knowledge.METHODS[method]
        settings = kind(**SHARED, epochs=FLAGS.epochs, seed=seed)
        model = knowledge.GraphVectors(len(graph.entities), len(graph.relations), settings)
        model.train(triples)
        return knowledge.score_links(model, held_out, triples)

    return train


def train_theirs(graph, triples, held_out, seed):
    """Return the scores of PyKEEN's TransE."""
    import torch
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.losses import MarginRankingLoss
    from pykeen.models import TransE
    from pykeen.training import SLCWATrainingLoop
    from pykeen.triples import CoreTriplesFactory

    mapped, scored = (torch.tensor(rows, dtype=torch.long) for rows in (triples, held_out))
    factory = CoreTriplesFactory(mapped, len(graph.entities), len(graph.relations))
    model = TransE(
        triples_factory=factory,
        embedding_dim=SHARED["dim"],
        loss=MarginRankingLoss(margin=1.0),
        random_seed=seed,
    )
    loop = SLCWATrainingLoop(
        model=model,
        triples_factory=factory,
        optimizer=torch.optim.Adam(model.parameters(), lr=SHARED["learning_rate"]),
        negative_sampler_kwargs={"num_negs_per_pos": SHARED["negatives"]},
    )
    loop.train(
        factory,
        num_epochs=FLAGS.epochs,
        batch_size=SHARED["batch_triples"],
        use_tqdm=False,
        use_tqdm_batch=False,
    )
    result = RankBasedEvaluator().evaluate(
        model, scored, batch_size=32, additional_filter_triples=[mapped], use_tqdm=False
    )
    names = {"mrr": "inverse_harmonic_mean_rank", "mean_rank": "arithmetic_mean_rank"}
    names |= {f"hits_at_{k}": f"hits_at_{k}" for k in (1, 3, 10)}
    return {key: result.get_metric(f"both.realistic.{name}") for key, name in names.items()}


if __name__ == "__main__":
    entry_point.run(main)
