"""Knowledge from outside the text: graphs, mentions of their entities, vectors of both.

Decisions: docs/decisions/knowledge.md.
"""

from .conceptnet import read_conceptnet as read_conceptnet
from .graph import KnowledgeGraph as KnowledgeGraph
from .mentions import find_mentions as find_mentions
from .schema_graphs import SchemaGraph as SchemaGraph
from .schema_graphs import SchemaGraphs as SchemaGraphs
from .schema_graphs import concept_vectors as concept_vectors
from .wordnet import read_wordnet as read_wordnet
