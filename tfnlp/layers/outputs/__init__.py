"""Output layers, between the last hidden states and a prediction."""
