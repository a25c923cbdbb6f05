"""Shared foundations: masks, positions, activations and the base class of all layers."""
