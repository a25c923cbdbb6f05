"""Compression of models: pruning, clustering, quantisation."""

from .compression_settings import ClusteringConfig as ClusteringConfig
from .compression_settings import PruningConfig as PruningConfig
from .structured_pruning import measure_importance as measure_importance
from .structured_pruning import order_structure as order_structure
from .structured_pruning import prune_structure as prune_structure
from .vocabulary_pruning import choose_tokens as choose_tokens
from .vocabulary_pruning import compare_models as compare_models
from .vocabulary_pruning import compare_tokenizers as compare_tokenizers
from .vocabulary_pruning import keep_rows as keep_rows
from .vocabulary_pruning import prune_vocabularies as prune_vocabularies
from .vocabulary_pruning import prune_vocabulary as prune_vocabulary
from .vocabulary_pruning import task_texts as task_texts
from .weight_clustering import Clusterer as Clusterer
from .weight_pruning import Pruner as Pruner
from .weight_pruning import sparsity as sparsity
