"""Knowledge from outside the text: graphs, mentions of their entities, vectors of both.

Decisions: docs/decisions/knowledge.md.
"""

from .conceptnet import read_conceptnet as read_conceptnet
from .entity_tokenizer import EntityTokenizer as EntityTokenizer
from .entity_tokenizer import load_entity_tokenizer as load_entity_tokenizer
from .entity_tokenizer import named_vectors as named_vectors
from .graph import KnowledgeGraph as KnowledgeGraph
from .mentions import find_mentions as find_mentions
from .wordnet import read_wordnet as read_wordnet
