"""Files of triples, parts of a graph, and edges held out of it."""

import collections

import numpy as np

from tfnlp.knowledge.graph import KnowledgeGraph
from tfnlp.text.reading.lines import read_lines
from tfnlp.utils.errors import InputError, spelt_alike, unknown_name
from tfnlp.utils.files import write_text


def read_triples(path):
    """Read a file of triples: head, relation and tail on a line, separated by tabs.

    Raises:
        InputError: if a line is malformed.
    """
    return KnowledgeGraph.from_names(triple for _, triple in _named_triples(path))


def number_triples(path, entities, relations):
    """Read a file of triples as (n, 3) ids of a graph's entities and relations.

    Args:
        path: the file.
        entities, relations: lists of names.

    Raises:
        InputError: if a line is malformed, or has a name that the graph lacks.
    """
    numbers = [{name: i for i, name in enumerate(names)} for names in (entities, relations)]
    rows = []
    for number, (head, relation, tail) in _named_triples(path):
        for kind, name, known in zip(
            ("relation", "entity", "entity"),
            (relation, head, tail),
            (numbers[1], numbers[0], numbers[0]),
            strict=True,
        ):
            if name not in known:
                raise InputError(
                    f"{path}, line {number}: the {kind} {name!r} is not in the graph"
                    f"{spelt_alike(name, known)}; leave the line out, or train with it."
                )
        rows.append((numbers[0][head], numbers[1][relation], numbers[0][tail]))
    return np.array(rows, "int32")


def _named_triples(path):
    """Yield (line number, (head, relation, tail))."""
    for number, line in read_lines(path):
        names = tuple(line.split("\t"))
        if len(names) != 3 or not all(names) or " " in line:
            raise InputError(
                f"{path}, line {number}: expected head, relation and tail, with tabs between "
                "and no space, which files of vectors cannot hold."
            )
        yield number, names


def write_triples(path, graph, triples):
    """Write ids of a graph's entities and relations as a file of triples."""
    lines = (
        f"{graph.entities[head]}\t{graph.relations[relation]}\t{graph.entities[tail]}\n"
        for head, relation, tail in triples.tolist()
    )
    write_text(path, "".join(lines))


def select_triples(graph, relations=(), max_entities=None):
    """Return the graph of some relations, among the entities that have the most triples.

    Args:
        graph: a `KnowledgeGraph`.
        relations: names of relations to keep; all by default.
        max_entities: the number of entities to keep at most; all by default.

    Raises:
        InputError: for an unknown relation, or if no triple is left.
    """
    for name in relations:
        if name not in graph.relations:
            raise unknown_name("relations", name, graph.relations)
    kept_relations = [graph.relations.index(name) for name in relations or graph.relations]
    triples = graph.triples[np.isin(graph.triples[:, 1], kept_relations)]
    counts = np.bincount(triples[:, [0, 2]].ravel(), minlength=len(graph.entities))
    best = np.argsort(-counts, kind="stable")[:max_entities]
    triples = triples[np.isin(triples[:, [0, 2]], best).all(1)]
    if not len(triples):
        raise InputError(
            f"The graph has no triple of relations={','.join(relations) or 'any'} among its "
            f"max_entities={max_entities} commonest entities; keep more."
        )
    ids = {old: new for new, old in enumerate(np.unique(triples[:, [0, 2]]).tolist())}
    relation_ids = {old: new for new, old in enumerate(np.unique(triples[:, 1]).tolist())}
    lemmas = {
        lemma: [ids[entity] for entity in entities if entity in ids]
        for lemma, entities in graph.lemmas.items()
    }
    return KnowledgeGraph(
        [graph.entities[entity] for entity in ids],
        [graph.relations[relation] for relation in relation_ids],
        np.array([(ids[h], relation_ids[r], ids[t]) for h, r, t in triples.tolist()], "int32"),
        {lemma: entities for lemma, entities in lemmas.items() if entities},
    )


def hold_out(graph, share, seed=0):
    """Split the triples at random into those to train on and those held out.

    All triples of two entities are on one side, so that no held-out triple has its inverse
    (hypernym and hyponym), its symmetric one or another relation of its pair in training. Every
    entity and relation keeps a triple in training.

    Args:
        graph: a `KnowledgeGraph`.
        share: the share of triples to hold out.
        seed: of the draw.

    Returns:
        Two arrays of triples, (n, 3).

    Raises:
        InputError: if no triple can be held out.
    """
    pairs = np.sort(graph.triples[:, [0, 2]], axis=1)
    groups = np.unique(pairs, axis=0, return_inverse=True)[1].ravel()
    rows = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    names = graph.triples + np.array([0, len(graph.entities), 0])  # one number for each name
    left = np.bincount(names.ravel())
    held_out = np.zeros(len(names), bool)
    free = share * len(names)
    for group in np.random.default_rng(seed).permutation(len(rows)):
        uses = collections.Counter(names[rows[group]].ravel().tolist())
        fits = len(rows[group]) <= free
        if fits and all(left[name] > count for name, count in uses.items()):
            held_out[rows[group]] = True
            free -= len(rows[group])
            left[list(uses)] -= list(uses.values())
    if not held_out.any():
        raise InputError(
            f"None of {len(names)} triples can be held out with held_out={share}, since each "
            "entity needs one in training; give more triples, or a file to score on."
        )
    return graph.triples[~held_out], graph.triples[held_out]
