"""Schema graphs: the paths of a knowledge graph between the concepts of two texts.

Lin et al. 2019, 'KagNet', section 3.
"""

import dataclasses
import functools
import itertools
import re

import numpy as np

from tfnlp.knowledge.graph import KnowledgeGraph
from tfnlp.knowledge.mentions import find_mentions

_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_POSSESSIVE = re.compile(r"['’]s\b")
# Paths from an entity that are kept in memory, in entities.
_KEPT = 2000


@dataclasses.dataclass(frozen=True)
class SchemaGraph:
    """Paths between the concepts of a question and those of an answer.

    Attributes:
        paths: {(question concept, answer concept): paths between them}; a path is a tuple of
            entities, from the question's to the answer's. Concepts without a path are left out.
        compared: the number of pairs of concepts that paths were looked for between.
        linked: the number of those with a path, the ones beyond `max_pairs` included.
    """

    paths: dict
    compared: int
    linked: int

    @property
    def entities(self):
        """All entities of the paths, each once."""
        paths = itertools.chain.from_iterable(self.paths.values())
        return list(dict.fromkeys(itertools.chain.from_iterable(paths)))


def split_words(text):
    """Return the words of a text, with hyphens and apostrophes, but without a possessive 's."""
    return _WORD.findall(_POSSESSIVE.sub("", text))


class SchemaGraphs:
    """Schema graphs of questions with their answers, from one knowledge graph.

    Args:
        graph: a `KnowledgeGraph`. Its triples are followed in both directions.
        max_edges: edges of a path, at most.
        max_pairs: pairs of concepts with a path that are kept, those of the shortest paths first.
        max_paths: paths of a pair that are kept: the shortest, and of equally long ones those
            whose inner entities have the fewest neighbours.
        split: function from a text to its words, such as `tfnlp.baselines.morphemes`, which parts
            Korean words from their particles.
    """

    def __init__(
        self, graph: KnowledgeGraph, max_edges=4, max_pairs=4, max_paths=2, split=split_words
    ):
        self.graph, self.max_edges, self.split = graph, max_edges, split
        self.max_pairs, self.max_paths = max_pairs, max_paths
        self.relations = _neighbours(graph)
        self._walks = functools.lru_cache(_KEPT)(self._find_walks)

    def concepts(self, text):
        """Return the entities that a text mentions, each once."""
        mentions = find_mentions(self.split(text), self.graph)
        return list(dict.fromkeys(entity for _, _, entity in mentions))

    def schema_graph(self, question, answer):
        """Return the `SchemaGraph` of two texts; a concept of both is the answer's alone."""
        answers = self.concepts(answer)
        questions = [entity for entity in self.concepts(question) if entity not in answers]
        pairs = list(itertools.product(questions, answers))
        paths = {pair: self.find_paths(*pair) for pair in pairs}
        linked = sorted((p for p in pairs if paths[p]), key=lambda pair: len(paths[pair][0]))
        kept = {pair: paths[pair] for pair in linked[: self.max_pairs]}
        return SchemaGraph(kept, len(pairs), len(linked))

    def find_paths(self, source, target):
        """Return the paths between two entities, tuples of entities, at most `max_paths`.

        No entity stands twice in a path. Walks from both ends meet in the middle.
        """
        paths = []
        for edges in range(1, self.max_edges + 1):
            front, back = self._walks(source, (edges + 1) // 2), self._walks(target, edges // 2)
            joined = [
                walk + rest[-2::-1]
                for middle in front
                for walk in front[middle]
                for rest in back.get(middle, ())
                if set(walk[:-1]).isdisjoint(rest)
            ]
            paths += sorted(joined, key=self._inner_neighbours)
            if len(paths) >= self.max_paths:
                break
        return paths[: self.max_paths]

    def arrays(self, schema_graphs):
        """Return `SchemaGraph`s as padded int32 arrays.

        The nodes of a schema graph are its entities; the first is padding.

        Returns:
            A dict of `concepts` (graphs, N), the entity of each node, from 1; `adjacency`
            (graphs, N, N), 1 where an edge of the knowledge graph joins two nodes; `pair_nodes`
            (graphs, Q, 2), the nodes of each pair of concepts; `path_nodes` (graphs, Q, M, K + 1),
            those of each path; `relations` (graphs, Q, M, K), the relation of each edge, from 1.
            All are 0 at padding.
        """
        nodes = [[None, *graph.entities] for graph in schema_graphs]
        count, most = len(nodes), max(map(len, nodes), default=1)
        pairs, paths, edges = self.max_pairs, self.max_paths, max(1, self.max_edges)
        shapes = {
            "concepts": (most,),
            "adjacency": (most, most),
            "pair_nodes": (pairs, 2),
            "path_nodes": (pairs, paths, edges + 1),
            "relations": (pairs, paths, edges),
        }
        arrays = {name: np.zeros((count, *shape), "int32") for name, shape in shapes.items()}
        for row, graph in enumerate(schema_graphs):
            self._fill({name: array[row] for name, array in arrays.items()}, nodes[row], graph)
        return arrays

    def _fill(self, arrays, nodes, graph):
        """Write a schema graph of these nodes into its rows of the arrays."""
        places = {entity: place for place, entity in enumerate(nodes) if place}
        for entity, place in places.items():
            arrays["concepts"][place] = 1 + entity
            for neighbour in places.keys() & self.relations[entity].keys():
                arrays["adjacency"][place, places[neighbour]] = 1
        for i, (pair, paths) in enumerate(graph.paths.items()):
            arrays["pair_nodes"][i] = [places[entity] for entity in pair]
            for k, path in enumerate(paths):
                arrays["path_nodes"][i, k, : len(path)] = [places[entity] for entity in path]
                relations = [1 + self.relation(*edge) for edge in itertools.pairwise(path)]
                arrays["relations"][i, k, : len(relations)] = relations

    def relation(self, head, tail):
        """Return the number of an edge's relation, plus the number of all if it is reversed."""
        return self.relations[head][tail]

    def relation_name(self, head, tail):
        """Return the name of an edge's relation, after a minus if it is reversed."""
        number, count = self.relation(head, tail), len(self.graph.relations)
        return "-" * (number >= count) + self.graph.relations[number % count]

    def _find_walks(self, entity, edges):
        """Return {end: walks of so many edges from an entity to it}."""
        if not edges:
            return {entity: [(entity,)]}
        walks = {}
        for walk in itertools.chain.from_iterable(self._walks(entity, edges - 1).values()):
            for neighbour in self.relations[walk[-1]]:
                if neighbour not in walk:
                    walks.setdefault(neighbour, []).append((*walk, neighbour))
        return walks

    def _inner_neighbours(self, path):
        return sum(len(self.relations[entity]) for entity in path[1:-1])


def _neighbours(graph):
    """Return a dict of neighbours for each entity, {neighbour: relation}.

    Of several relations the first counts; one that leads to the entity only if none leads from it.
    """
    neighbours = [{} for _ in graph.entities]
    triples = graph.triples.tolist()
    for head, relation, tail in triples:
        neighbours[head].setdefault(tail, relation)
    for head, relation, tail in triples:
        neighbours[tail].setdefault(head, relation + len(graph.relations))
    return neighbours


def concept_vectors(graph, vectors=None, dim=100, seed=0):
    """Return the vectors of a graph's entities, (entities, C) float32.

    Args:
        graph: a `KnowledgeGraph`.
        vectors: `tfnlp.baselines.WordVectors` whose words are entities, zeros for those that are
            missing; if None, all are drawn at random: they tell entities apart, and no more.
        dim: C of random vectors.
        seed: of random vectors.

    Raises:
        InputError: if no entity has a vector.
    """
    if vectors is None:
        shape = len(graph.entities), dim
        return np.random.default_rng(seed).normal(scale=dim**-0.5, size=shape).astype("float32")
    if not any(name in vectors for name in graph.entities):
        raise graph.without_vectors(vectors)
    table = np.zeros((len(graph.entities), vectors.vectors.shape[1]), "float32")
    for row, name in enumerate(graph.entities):
        if name in vectors:
            table[row] = vectors[name]
    return table
