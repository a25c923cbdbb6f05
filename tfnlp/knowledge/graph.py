"""Graph of entities and relations."""

import dataclasses
import functools

import numpy as np

from tfnlp.utils.errors import InputError, needs_packages


@dataclasses.dataclass(frozen=True, eq=False)
class KnowledgeGraph:
    """Entities, relations, and the triples that join them.

    Attributes:
        entities: names of the entities, each once.
        relations: names of the relations, each once.
        triples: (n, 3) int32, the ids of head, relation and tail.
        lemmas: {lemma: ids of its entities}, the most frequent sense first. Lemmas are in lower
            case, their words separated by a space.
    """

    entities: list[str]
    relations: list[str]
    triples: np.ndarray
    lemmas: dict[str, list[int]]

    @functools.cached_property
    def longest_lemma(self):
        """The number of words in the longest lemma."""
        return 1 + max((lemma.count(" ") for lemma in self.lemmas), default=0)

    def without_vectors(self, vectors):
        """Return the InputError of `tfnlp.baselines.WordVectors` of which none is of an entity."""
        return InputError(
            f"None of the {len(vectors)} vectors, such as {vectors.words[0]}, is of an entity of "
            f"the graph, such as {self.entities[0]}; give vectors that were trained on it."
        )

    def to_networkx(self):
        """Return a `networkx.MultiDiGraph` of entity names; an edge's key is its relation."""
        with needs_packages("The graph", "networkx"):
            import networkx
        graph = networkx.MultiDiGraph()
        graph.add_nodes_from(self.entities)
        graph.add_edges_from(
            (self.entities[head], self.entities[tail], self.relations[relation])
            for head, relation, tail in self.triples.tolist()
        )
        return graph

    @classmethod
    def from_names(cls, triples, lemmas=None):
        """Number the entities and relations of triples in the order in which they occur.

        Args:
            triples: an iterable of (head, relation, tail), strings; repeated ones count once.
            lemmas: {lemma: names of its entities}; by default each entity's name is its lemma, an
                underscore read as a space.
        """
        triples = list(dict.fromkeys(triples))
        entities = list(dict.fromkeys(name for head, _, tail in triples for name in (head, tail)))
        relations = list(dict.fromkeys(relation for _, relation, _ in triples))
        ids = {name: i for i, name in enumerate(entities)}
        relation_ids = {name: i for i, name in enumerate(relations)}
        numbered = [(ids[head], relation_ids[name], ids[tail]) for head, name, tail in triples]
        if lemmas is None:
            lemmas = {}
            for name in entities:
                lemmas.setdefault(name.lower().replace("_", " "), []).append(name)
        return cls(
            entities,
            relations,
            np.array(numbered, "int32").reshape(-1, 3),
            {lemma: [ids[name] for name in names] for lemma, names in lemmas.items()},
        )
