"""Knowledge from outside the text: graphs, mentions of their entities, vectors of both.

Decisions: docs/decisions/knowledge.md.
"""

from .conceptnet import read_conceptnet as read_conceptnet
from .entity_tokenizer import EntityTokenizer as EntityTokenizer
from .entity_tokenizer import load_entity_tokenizer as load_entity_tokenizer
from .entity_tokenizer import named_vectors as named_vectors
from .graph import KnowledgeGraph as KnowledgeGraph
from .graph_vector_settings import METHODS as METHODS
from .graph_vectors import GraphVectors as GraphVectors
from .graph_vectors import load_graph_vectors as load_graph_vectors
from .link_prediction import score_links as score_links
from .mentions import find_mentions as find_mentions
from .schema_graphs import SchemaGraph as SchemaGraph
from .schema_graphs import SchemaGraphs as SchemaGraphs
from .schema_graphs import concept_vectors as concept_vectors
from .schema_graphs import split_words as split_words
from .triples import hold_out as hold_out
from .triples import number_triples as number_triples
from .triples import read_triples as read_triples
from .triples import select_triples as select_triples
from .triples import write_triples as write_triples
from .wordnet import read_wordnet as read_wordnet
