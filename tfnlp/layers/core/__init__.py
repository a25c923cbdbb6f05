"""What every room builds on: masks, positions, activations, the base of all layers."""
