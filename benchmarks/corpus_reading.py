"""Cost of preparing a corpus, and speed of random reads of its documents, on one core.

    python -m benchmarks.corpus_reading --input=reviews.txt.gz --tokenizer_dir=MINILM \\
        --documents=lines --processes=2

Prepares the corpus with the recipe in a temporary folder, and prints counts, seconds, sizes and
the peak memory of all its processes. Then it reads random documents, and makes batches with masked
tokens from them (64 x 128). Rates are per second of CPU time, which other work on the machine
hardly changes.
"""

import os
import pathlib
import sys
import tempfile
import time

from absl import flags

from recipes import entry_point

FLAGS = flags.FLAGS
flags.DEFINE_list("input", None, "Files of text, as prepare_corpus takes them.")
flags.DEFINE_string("tokenizer_dir", None, "Folder of the tokenizer.")
flags.DEFINE_enum(
    "documents", "blank_lines", ["blank_lines", "lines", "files"], "What parts documents."
)
flags.DEFINE_integer("processes", 2, "Processes that tokenise.", 1)
flags.DEFINE_integer("tokens", 5_000_000, "Tokens to read in each measurement, about.", 1)
flags.mark_flags_as_required(["input", "tokenizer_dir"])

BATCH_SIZE, MAX_LENGTH = 64, 128


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


def make_batches(corpus, tokenizer):
    """Read texts at random places, and add special tokens, pad and mask them.

    Returns:
        Tokens per second of CPU time.
    """
    import numpy as np

    from tfnlp.objectives import Masking, SpecialTokenTemplate

    template, masking = (
        SpecialTokenTemplate.from_tokenizer(tokenizer),
        Masking.from_tokenizer(tokenizer),
    )
    room, rng = MAX_LENGTH - template.single_size, np.random.default_rng(0)
    counts = corpus.token_counts
    ends = np.cumsum(counts)
    tokens, start, number = 0, time.process_time(), 0
    while tokens < FLAGS.tokens:
        rows = []
        for place in rng.integers(0, ends[-1], BATCH_SIZE):
            index = np.searchsorted(ends, place, side="right")
            begin = place - ends[index] + counts[index]
            begin = max(0, min(begin, counts[index] - room))
            rows.append(template.around(corpus.part(index, begin, begin + room))[0])
        lengths = np.array([len(row) for row in rows])
        padding_mask = (np.arange(lengths.max()) < lengths[:, None]).astype("int32")
        token_ids = np.full(padding_mask.shape, tokenizer.pad_token_id, "int32")
        token_ids[padding_mask > 0] = np.concatenate(rows)
        masking.mask(token_ids, padding_mask, np.random.default_rng([0, 0, number]))
        tokens += lengths.sum()
        number += 1
    return tokens / (time.process_time() - start)


def main():
    from tfnlp.objectives import ShardedCorpus
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
        # Use one core from here on, if the system supports it.
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
        read_documents(corpus)  # warm up the system's page cache
        print(f"random documents: {read_documents(corpus):,.0f} tokens/s")
        print(f"batches with masked tokens: {make_batches(corpus, tokenizer):,.0f} tokens/s")


if __name__ == "__main__":
    entry_point.run(main)
