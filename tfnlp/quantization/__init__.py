"""Quantisation-aware training: rounding in the products of layers."""
