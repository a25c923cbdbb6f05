"""Cost of preparing a corpus, and rates of its documents and of the objectives' batches.

    python -m benchmarks.corpus_reading --input=reviews.txt.gz --tokenizer_dir=MINILM \\
        --documents=lines

Prepares the corpus with the recipe in a temporary folder, and prints counts, seconds, sizes and
the peak memory of all its processes. Then it reads random documents on one core, and makes the
batches (64 x 128) of each objective in turn: from the corpus in memory, from the folder on one
core, and from the folder by two processes. Rates of one core are per second of CPU time, which
other work on the machine hardly changes; that of two processes is by the clock, beside one's.
"""

import itertools
import os
import pathlib
import sys
import tempfile
import time

from absl import flags

from recipes.shell import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_list("input", None, "Files of text, as prepare_corpus takes them.")
flags.DEFINE_string("tokenizer_dir", None, "Folder of the tokenizer.")
flags.DEFINE_enum(
    "documents", "blank_lines", ["blank_lines", "lines", "files"], "What parts documents."
)
flags.DEFINE_integer("processes", 2, "Processes that tokenise.", 1)
flags.DEFINE_integer("tokens", 5_000_000, "Tokens of each measurement, about.", 1)
flags.mark_flags_as_required(["input", "tokenizer_dir"])

BATCH_SIZE, MAX_LENGTH = 64, 128
# Batches before a measurement, for all processes to have started.
WARM_UP = 64


def prepare(folder):
    """Run the recipe; return its seconds, its CPU seconds and its peak memory in bytes."""
    import psutil

    command = [sys.executable, "-m", "recipes.prepare_corpus", f"--output_dir={folder}"]
    command += [f"--input={','.join(FLAGS.input)}", f"--tokenizer_dir={FLAGS.tokenizer_dir}"]
    command += [f"--documents={FLAGS.documents}", f"--processes={FLAGS.processes}"]
    before, start, peak = os.times(), time.perf_counter(), 0
    process = psutil.Popen([*command, "--deduplicate"])
    while process.poll() is None:
        peak = max(peak, memory_of(process))
        time.sleep(0.05)
    if process.returncode:
        sys.exit(process.returncode)
    after = os.times()
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    return time.perf_counter() - start, used, peak


def memory_of(process):
    """Return the memory of a process and its children in bytes.

    On Linux this is the PSS, which counts shared pages once; elsewhere it is the RSS.
    """
    import psutil

    held = 0
    try:
        for one in (process, *process.children(recursive=True)):
            held += (
                one.memory_full_info().pss if sys.platform == "linux" else one.memory_info().rss
            )
    except psutil.Error:  # one that has just ended
        return 0
    return held


def read_documents(corpus):
    """Read random whole documents; return tokens per second of CPU time."""
    import numpy as np

    number = int(FLAGS.tokens / corpus.token_counts.mean()) + 1
    order = np.random.default_rng(0).integers(0, len(corpus), number)
    tokens, start = 0, time.process_time()
    for index in order:
        tokens += len(corpus.document(index))
    return tokens / (time.process_time() - start)


def objective_batches(tokenizer):
    """Return {name: a function from a corpus to its batches}."""
    from tfnlp import objectives

    kinds = {
        "masked LM": objectives.MaskedLM(),
        "masked words": objectives.MaskedLM("words"),
        "next sentence": objectives.NextSentence(),
        "sentence order": objectives.SentenceOrder(),
        "causal LM": objectives.CausalLM(),
        "permutation LM": objectives.PermutationLM(),
    }

    def maker(objective):
        return lambda corpus: objective.batches(corpus, tokenizer, BATCH_SIZE, MAX_LENGTH)

    return {name: maker(objective) for name, objective in kinds.items()}


def batch_rate(batches, clock):
    """Return tokens per second of an epoch's batches, after `WARM_UP`."""
    made = batches.epoch()
    for _ in range(WARM_UP):
        next(made)
    tokens, start = 0, clock()
    for inputs, _ in itertools.islice(made, FLAGS.tokens // (BATCH_SIZE * MAX_LENGTH)):
        tokens += int(inputs["padding_mask"].sum())
    rate = tokens / (clock() - start)
    made.close()
    return rate


def compare_batches(disk, memory, tokenizer):
    """Print the rates of each objective's batches."""
    print("| objective | memory | folder | over memory | by clock | two processes | over one |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, make in objective_batches(tokenizer).items():
        batches = make(disk)
        rates = [batch_rate(make(memory), time.process_time)]
        rates.append(batch_rate(batches, time.process_time))
        rates.append(batch_rate(batches, time.perf_counter))
        batches.processes = 2
        rates.append(batch_rate(batches, time.perf_counter))
        ram, one, clock, two = rates
        print(
            f"| {name} | {ram:,.0f} | {one:,.0f} | {one / ram:.2f} | {clock:,.0f} | {two:,.0f} "
            f"| {two / clock:.2f} |",
            flush=True,
        )


def main():
    from tfnlp.objectives import ShardedCorpus, open_corpus
    from tfnlp.text import load_tokenizer

    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place) / "corpus"
        seconds, used, peak = prepare(folder)
        tokenizer = load_tokenizer(FLAGS.tokenizer_dir)
        corpus = ShardedCorpus(folder, tokenizer)
        counts, shards = corpus.manifest["counts"], corpus.manifest["shards"]
        given = sum(size for _, size in corpus.manifest["files"]) / 1e6
        text = sum(shard["text_bytes"] for shard in shards) / 1e6
        written = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        print(", ".join(f"{value:,} {name}" for name, value in counts.items()))
        print(
            f"{given:.1f} MB of files, {text:.1f} MB of text, {len(shards)} shards of "
            f"{written:.1f} MB in all; peak memory of all processes {peak / 1e6:.0f} MB"
        )
        print(
            f"prepared in {seconds:.1f} s with {FLAGS.processes} processes ({used:.1f} s of "
            f"processor time): {counts['tokens'] / used:,.0f} tokens and {text / used:.2f} MB of "
            "text a second of it"
        )
        read_documents(corpus)  # warm up the system's page cache
        print(f"random documents: {read_documents(corpus):,.0f} tokens/s")
        memory = open_corpus(FLAGS.input, tokenizer, FLAGS.documents)
        compare_batches(corpus, memory, tokenizer)


if __name__ == "__main__":
    entry_point.run(main)
