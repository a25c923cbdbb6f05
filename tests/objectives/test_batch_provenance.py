"""The documents that a batch was made from."""

import numpy as np

from tfnlp.corpora.corpus_preparation import CorpusSettings, prepare_corpus
from tfnlp.objectives import CausalLM, MaskedLM, open_corpus
from tfnlp.objectives.batch_provenance import batch_documents, describe_documents


def test_what_a_batch_was_made_from(tokenizer, tmp_path):
    """Whatever an objective reads, also documents of other lanes, and shards by their names."""
    rng = np.random.default_rng(0)
    words = [t for t in tokenizer.vocabulary if t.isalpha()]
    texts = [" ".join(rng.choice(words, 6)) for _ in range(24)]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    folder = tmp_path / "corpus"
    prepare_corpus([tmp_path / "texts.txt"], tokenizer, folder, CorpusSettings("lines"))
    corpus = open_corpus(folder, tokenizer)
    batches = MaskedLM().batches(corpus, tokenizer, 4, 16)
    read = batch_documents(batches, 1, 2)
    assert read == sorted(batches.encodings.documents[batches.batch_indices(1)[2]])
    (shard,) = folder.glob("*.ids.npy")
    said = f"documents {', '.join(map(str, read))} of {shard}"
    assert describe_documents(batches, 1, 2) == said
    lanes = CausalLM(memory=True).batches(corpus, tokenizer, 2, 8)
    stream = lanes.stream(0)
    first = {int(stream.order[0]), int(stream.order[1])}
    assert first <= set(batch_documents(lanes, 0, 0))
    assert len(batch_documents(lanes, 0, 0)) < 8
