"""Comparison of files: predictions, latency, Pareto frontier."""

from .latency import benchmark_file as benchmark_file
from .latency import print_benchmark as print_benchmark
from .pareto_frontier import find_candidates as find_candidates
from .pareto_frontier import measure_candidates as measure_candidates
from .pareto_frontier import name_candidates as name_candidates
from .pareto_frontier import page as page
from .pareto_frontier import table_rows as table_rows
from .prediction_shards import Predictor as Predictor
from .prediction_shards import predict_files as predict_files
