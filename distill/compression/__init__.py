"""Compression of models: pruning, clustering, quantisation."""
