"""The mathematics of the layers and losses: attention, scores, masks, positions, means."""

from . import weighted_losses as weighted_losses
