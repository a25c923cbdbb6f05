"""Work in shards: functions that map over shards in this process, in several, or in Apache Beam.

Each is called as `map_shards(load, items)`. `load` takes no argument and runs once in a process;
the function that it returns is called with each item. It writes files, and returns nothing. The
files of an item depend on the item alone, so that they are the same whoever writes them.
"""

import logging
import re

from tfnlp.utils.errors import InputError, needs_packages
from tfnlp.utils.progress import progress_bar
from tfnlp.utils.worker_pool import worker_pool


def run_shards(load, items, name, map_shards=None, done=0):
    """Do the work of all items behind a progress bar; load nothing where there are none.

    Args:
        load: as above.
        items: a list.
        name: of the work, for the bar.
        map_shards: one of the functions below; `in_this_process` where None.
        done: the number of further shards that are there already.
    """
    total = done + len(items)
    with progress_bar(total=total, initial=done, desc=name, unit="shard") as bar:
        for _ in (map_shards or in_this_process)(load, items) if items else ():
            bar.update()


def in_this_process(load, items):
    """Yield each item once its work is done."""
    make = load()
    for item in items:
        make(item)
        yield item


def in_processes(processes):
    """Return a function like `in_this_process` that works in several processes.

    Its `load` is pickled, and its items are done in order.

    Raises:
        InputError: by the function, if a process is killed.
    """
    if processes == 1:
        return in_this_process

    advice = f"call again to resume, with fewer than processes={processes} to use less memory"

    def map_shards(load, items):
        with worker_pool(processes, load, advice) as give:
            for item, work in [(item, give(item)) for item in items]:
                work.result()
                yield item

    return map_shards


def in_beam(runner, options=()):
    """Return a function like `in_this_process` that works in an Apache Beam pipeline.

    Its `load` and items are pickled; all items are yielded at the end.

    Args:
        runner: Beam's name of it, such as "DirectRunner", "FlinkRunner" or "DataflowRunner".
        options: of the pipeline, a list of flags as on a command line.

    Raises:
        InputError: if apache-beam is not installed; by the function, as the work does.
    """
    with needs_packages(f"runner={runner}", "apache-beam"):
        import apache_beam as beam
        from apache_beam.options.pipeline_options import PipelineOptions

    logging.getLogger("apache_beam").setLevel(logging.WARNING)

    class Work(beam.DoFn):
        def __init__(self, load):
            self.load = load

        def setup(self):
            self.make = self.load()

        def process(self, item):
            self.make(item)

    def map_shards(load, items):
        items = list(items)
        arguments = PipelineOptions([*options], runner=runner)
        try:
            with beam.Pipeline(options=arguments) as pipeline:
                # Without the shuffle one worker would do what it created.
                shards = pipeline | beam.Create(items) | beam.Reshuffle()
                shards | "work" >> beam.ParDo(Work(load))
        except Exception as e:
            # Beam adds the stage to a worker's error, and from another process the traceback.
            text = f"InputError: {e}" if isinstance(e, InputError) else str(e)
            message = re.search(r"(?:Input|Column)Error: (.*?)(?: \[while running|\n|$)", text)
            if message is None:
                raise
            raise InputError(message[1]) from None
        yield from items

    return map_shards
