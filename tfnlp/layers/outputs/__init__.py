"""What stands between the last states and a prediction."""
