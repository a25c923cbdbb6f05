"""Flags of who does the work of shards: this machine, or an Apache Beam pipeline."""

import os
import shlex

from absl import flags

from recipes.shell.command_line import group, refuse_without
from tfnlp.utils.shard_work import in_beam

FLAGS = flags.FLAGS


@group("Pipeline")
def define():
    """Define --runner and --pipeline_options."""
    flags.DEFINE_string(
        "runner",
        None,
        "Runner of an Apache Beam pipeline that makes the shards, such as DirectRunner, "
        "FlinkRunner, SparkRunner or DataflowRunner; this machine without Beam if not given.",
    )
    flags.DEFINE_string(
        "pipeline_options",
        "",
        "Options of the pipeline in quotes, such as '--flink_master=HOST:8081 --parallelism=64'.",
    )


def map_shards(needed=None):
    """Return the function of `tfnlp.utils.shard_work` of --runner; None without it.

    Args:
        needed: the name of a flag without which there are no shards.
    """
    if needed:
        refuse_without(["runner"], needed)
    refuse_without(["pipeline_options"], "runner")
    return in_beam(FLAGS.runner, shlex.split(FLAGS.pipeline_options)) if FLAGS.runner else None


def absolute(path):
    """Return a path as workers with another working folder find it; a name on the Hub as it is."""
    return os.path.abspath(path) if path and os.path.exists(path) else path
