"""The mathematics of the layers: attention, scores, masks, positions."""
