"""Text augmentation for distillation: words replaced, or texts continued.

Jiao et al. 2020 (TinyBERT), section 4 and algorithm 1; Wu et al. 2019 for the replacement by a
masked language model.
"""

import dataclasses
import re

import numpy as np
import tensorflow as tf
from keras import ops

from tfnlp.models import check_vocabulary
from tfnlp.objectives import predict_at_positions
from tfnlp.objectives.masking import POSITIONS
from tfnlp.text import Encoding, LengthBatches
from tfnlp.text.lines import read_lines
from tfnlp.utils.errors import InputError
from tfnlp.utils.progress import progress_bar

# Words that may be replaced consist of letters; numbers stay.
_WORD = re.compile(r"\w+")
# Score that excludes a token from the candidates.
_NEVER = -1e9


@dataclasses.dataclass(frozen=True)
class ReplacementConfig:
    """Settings of word replacement; the defaults are the paper's.

    Args:
        probability: p_t, of replacing a word.
        copies: N_a, the copies of each text.
        candidates: K, the candidates for replacing a word.
        seed: of the draws, which depend only on it and on the text's number.
    """

    probability: float = 0.4
    copies: int = 20
    candidates: int = 15
    seed: int = 0


class WordReplacer:
    """Augmentation of texts by word replacement (Jiao et al. 2020, algorithm 1).

    A word that is a single token is masked. Its candidates are the K whole words that the masked
    language model finds most probable there. A word of several tokens has as candidates its K
    nearest neighbours among word vectors. In each copy each word is replaced with probability p_t,
    by a uniform draw from its candidates. Candidates come from the original text, as in the
    paper's released code, so a text takes one pass for each word, not for each copy. A word is not
    its own candidate.

    Args:
        model: with the head "masked_lm".
        tokenizer: its tokenizer, which has a token [MASK] or <mask>.
        vectors: `WordVectors` for words of several tokens; None to leave them unchanged.
        config: a `ReplacementConfig`.
        batch_size: masked texts in a batch.

    Raises:
        InputError: if the model has another head, or the tokenizer has no mask token.
    """

    def __init__(self, model, tokenizer, vectors=None, config=None, batch_size=64):
        if model.head != "masked_lm":
            raise InputError(
                f"The model has the head {model.head!r}, but words are replaced by one with "
                "'masked_lm'."
            )
        check_vocabulary(tokenizer, model)
        if tokenizer.mask_token_id is None:
            raise InputError("The tokenizer has no [MASK] and no <mask>, by which to ask a model.")
        self.model, self.tokenizer = model, tokenizer
        self.vectors = vectors
        self.config = config or ReplacementConfig()
        self.batch_size = batch_size
        self.words = whole_words(tokenizer)
        # The word itself may be among the most probable ones.
        most = min(self.config.candidates + 1, len(self.words))
        self._best = _best_tokens(model, list(self.words), most)

    def __call__(self, texts, first=0):
        """Return the copies of some texts.

        Args:
            texts: a list of strings.
            first: the number of the first in the whole file, on which the draws depend.

        Returns:
            A list of lists of `copies` texts.
        """
        candidates = self.candidates(texts)
        return [
            self._copies(text, found, number)
            for number, (text, found) in enumerate(zip(texts, candidates, strict=True), first)
        ]

    def candidates(self, texts):
        """Return the candidate replacements of the words of texts.

        Returns:
            For each text a dict {(start, end): list of words}, without words that have none.
        """
        encodings = self.tokenizer.encode(
            texts, max_length=self.model.text_config.max_length, offsets=True
        )
        found, masked = [{} for _ in texts], []
        for number, (text, encoding) in enumerate(zip(texts, encodings, strict=True)):
            for start, end in word_places(text):
                pieces = _pieces_within(encoding, start, end)
                if len(pieces) == 1:
                    masked.append((number, (start, end), encoding, pieces[0]))
                elif pieces and self.vectors is not None:
                    found[number][start, end] = self._neighbours(text[start:end])
        for (number, place, *_), best in zip(masked, self._predict(masked), strict=True):
            word = texts[number][slice(*place)]
            others = [self.words[i] for i in best if self.words[i].lower() != word.lower()]
            found[number][place] = others[: self.config.candidates]
        return [{place: words for place, words in sorted(one.items()) if words} for one in found]

    def _neighbours(self, word):
        return self.vectors.nearest(word, self.config.candidates)

    def _predict(self, masked):
        """Return the ids of the most probable words at each masked place, the best first."""
        encodings, places = [], []
        for _, _, encoding, place in masked:
            ids = list(encoding.token_ids)
            ids[place] = self.tokenizer.mask_token_id
            encodings.append(Encoding(ids, list(encoding.segment_ids), truncated=False))
            places.append(place)
        if not masked:
            return []
        pad = self.tokenizer.pad_token_id
        batches = LengthBatches(encodings, self.batch_size, pad_token_id=pad)
        found = [None] * len(masked)
        for indices in batches.batch_indices():
            inputs = batches.batch(indices)[0]
            positions = np.array([[places[i]] for i in indices], "int32")
            for i, ids in zip(indices, self._best(inputs | {POSITIONS: positions}), strict=True):
                found[i] = ids.tolist()
        return found

    def _copies(self, text, candidates, number):
        rng = np.random.default_rng([self.config.seed, number])
        shape = (self.config.copies, len(candidates))
        replaced = rng.random(shape) <= self.config.probability
        draws = rng.random(shape)
        copies = []
        for copy in range(self.config.copies):
            parts, end = [], 0
            for i, ((start, stop), words) in enumerate(candidates.items()):
                parts.append(text[end:start])
                word, end = text[start:stop], stop
                if replaced[copy, i]:
                    # Sorted, since rounding orders words of similar probability, and depends on
                    # the batch size.
                    word = _cased(sorted(words)[int(draws[copy, i] * len(words))], word)
                parts.append(word)
            copies.append("".join(parts) + text[end:])
        return copies


class WordVectors:
    """Word vectors, with nearest neighbours by cosine similarity.

    Args:
        words: a list of strings.
        vectors: (words, D).
        vector_of: function that returns the vector (D,) of a word that is not in `words`, or None.
    """

    def __init__(self, words, vectors, vector_of=None):
        self.words = list(words)
        self.vectors = _normalised(np.asarray(vectors, "float32"))
        self._rows = {word: row for row, word in reversed([*enumerate(self.words)])}
        self._vector_of = vector_of
        self._known = {}

    @classmethod
    def of_model(cls, model, tokenizer):
        """Build vectors from a model's token table; a word of several tokens has their mean."""
        table = ops.convert_to_numpy(model.get_layer("embeddings").token_table)
        words = whole_words(tokenizer)

        def vector_of(word):
            (encoding,) = tokenizer.encode([word], offsets=True)
            pieces = _pieces_within(encoding, 0, len(word))
            return table[[encoding.token_ids[i] for i in pieces]].mean(0) if pieces else None

        return cls(words.values(), table[list(words)], vector_of)

    @classmethod
    def from_file(cls, path):
        """Read GloVe's or word2vec's text format, keeping words of letters.

        Args:
            path: file with a word and its numbers on each line, separated by spaces; word2vec's
                first line has the two counts.

        Raises:
            InputError: if the file is missing or broken, naming the line.
        """
        return cls(*read_vectors(path))

    def nearest(self, word, count):
        """Return the `count` nearest words, without the word itself; none if it has no vector."""
        if (word, count) not in self._known:
            self._known[word, count] = self._nearest(word, count)
        return self._known[word, count]

    def _nearest(self, word, count):
        row = self._rows.get(word, self._rows.get(word.lower()))
        if row is not None:
            vector = self.vectors[row]
        else:
            vector = self._vector_of and self._vector_of(word)
            if vector is None:
                return []
            vector = _normalised(vector[None])[0]
        order = np.argsort(-(self.vectors @ vector), kind="stable")[: count + 1]
        found = [self.words[i] for i in order if self.words[i].lower() != word.lower()]
        return found[:count]


def read_vectors(path):
    """Read the words of letters and their vectors (words, D); see `WordVectors.from_file`."""
    words, rows, width = [], [], None
    for number, line in progress_bar(read_lines(path), desc="vectors", unit="word"):
        fields = line.rstrip().split(" ")
        if number == 1 and len(fields) == 2 and all(map(str.isdecimal, fields)):
            continue  # word2vec's counts
        width = width or len(fields) - 1
        # A few of GloVe's words contain a space.
        word, numbers = " ".join(fields[:-width]), fields[-width:]
        try:
            row = np.array(numbers, "float32")
        except ValueError:
            row = None
        if row is None or not word or width < 2 or not np.isfinite(row).all():
            raise InputError(
                f"{path}, line {number}: expected a word and {max(width, 2)} numbers with a space "
                "between, as in GloVe's and word2vec's text files."
            )
        if word.isalpha():
            words.append(word)
            rows.append(row)
    if not words:
        raise InputError(f"{path} holds no vector of a word of letters.")
    return words, np.stack(rows)


@dataclasses.dataclass(frozen=True)
class ContinuationConfig:
    """Settings of text continuation.

    Args:
        copies: the continuations of each text.
        kept: the share of a text's words to keep, at least one word.
        max_tokens: the most tokens to generate.
        top_k: the tokens to sample from at each position.
        temperature: divisor of the logits.
        seed: of the draws, which depend only on it and on the text's number.
    """

    copies: int = 4
    kept: float = 0.5
    max_tokens: int = 32
    top_k: int = 40
    temperature: float = 1.0
    seed: int = 0


class TextContinuer:
    """Augmentation of texts by sampled continuations of their beginnings from a causal LM.

    A continuation ends at an end token, at a line break, or after `max_tokens`.

    Args:
        model: with the head "causal_lm".
        tokenizer: its tokenizer.
        config: a `ContinuationConfig`.
        batch_size: texts in a batch.

    Raises:
        InputError: if the model has another head.
    """

    def __init__(self, model, tokenizer, config=None, batch_size=64):
        if model.head != "causal_lm":
            raise InputError(
                f"The model has the head {model.head!r}, but texts are continued by one with "
                "'causal_lm'."
            )
        check_vocabulary(tokenizer, model)
        self.model, self.tokenizer = model, tokenizer
        self.config = config or ContinuationConfig()
        self.batch_size = batch_size
        frame = list(tokenizer.encode([""])[0].token_ids)
        self._end = frame[-1] if frame else None  # such as [SEP]
        self._ends = {self._end, *map(tokenizer.token_id, ("<|endoftext|>", "</s>"))} - {None}
        self._best = _next_tokens(model, self.config.top_k, self.config.temperature)

    def __call__(self, texts, first=0):
        """Return the continuations of some texts; arguments as for `WordReplacer`."""
        config, rows, draws = self.config, [], []
        longest = self.model.text_config.max_length
        for number, text in enumerate(texts, first):
            words = list(re.finditer(r"\S+", text))
            last = words[max(round(config.kept * len(words)), 1) - 1].end() if words else 0
            ids = list(self.tokenizer.encode([text[:last]], max_length=longest)[0].token_ids)
            if ids and ids[-1] == self._end:
                ids.pop()
            rng = np.random.default_rng([config.seed, number])
            draws += list(rng.random((config.copies, config.max_tokens)))
            rows += [(text[:last], ids)] * config.copies
        found = []
        for start in range(0, len(rows), self.batch_size):
            piece = slice(start, start + self.batch_size)
            found += self._continue(rows[piece], draws[piece])
        return [found[i : i + config.copies] for i in range(0, len(found), config.copies)]

    def _continue(self, rows, draws):
        config, longest = self.config, self.model.text_config.max_length
        ids = [list(row) for _, row in rows]
        open_rows = [i for i, row in enumerate(ids) if row]
        for step in range(config.max_tokens):
            if longest is not None:
                open_rows = [i for i in open_rows if len(ids[i]) < longest]
            if not open_rows:
                break
            encodings = [Encoding(ids[i], [0] * len(ids[i]), truncated=False) for i in open_rows]
            pad = self.tokenizer.pad_token_id
            batches = LengthBatches(encodings, len(encodings), pad_token_id=pad)
            tokens, shares = self._best(batches.batch(np.arange(len(encodings)))[0])
            still = []
            for i, best, share in zip(open_rows, tokens, shares, strict=True):
                token = int(best[min(np.searchsorted(share, draws[i][step]), len(best) - 1)])
                if token in self._ends or "\n" in self.tokenizer.decode([token]):
                    continue
                ids[i].append(token)
                still.append(i)
            open_rows = still
        return [
            self._text(kept, given, whole) for (kept, given), whole in zip(rows, ids, strict=True)
        ]

    def _text(self, kept, given, whole):
        """Return the kept text as written, followed by the decoded continuation."""
        before, after = self.tokenizer.decode(given), self.tokenizer.decode(whole)
        return kept + after.removeprefix(before) if after.startswith(before) else after


def whole_words(tokenizer):
    """Return the words of letters that are a single token, {id: word}."""
    words = {i: tokenizer.decode([i]).strip() for i in range(tokenizer.vocabulary_size)}
    words = {i: word for i, word in words.items() if word.isalpha()}
    frame = set(tokenizer.encode([""])[0].token_ids)
    # Leave out word continuations, and tokens that their own text is not encoded as.
    read = tokenizer.encode_words([[word] for word in words.values()], max_length=512)
    found = {}
    for (i, word), encoding in zip(words.items(), read, strict=True):
        if [t for t in encoding.token_ids if t not in frame] == [i]:
            found[i] = word
    return found


def word_places(text):
    """Return the (start, end) character offsets of each word of letters."""
    return [m.span() for m in _WORD.finditer(text) if m.group().isalpha()]


def _pieces_within(encoding, start, end):
    """Return the indices of the tokens within a word; none if a token reaches beyond it."""
    pieces = []
    for i, (first, last) in enumerate(encoding.offsets):
        if first < end and last > start and last > first:
            if first < start - 1 or last > end:
                return []
            pieces.append(i)
    return pieces


def _cased(word, like):
    """Return a word with the capitalisation of another."""
    if len(like) > 1 and like.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if like[:1].isupper() else word


def _normalised(vectors):
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)


def _best_tokens(model, among, count):
    """Build a function from inputs with `POSITIONS` (B, 1) to the `count` best of some ids."""
    # Apply the head at masked positions only: over all tokens it takes most of the time.
    model = predict_at_positions(model)
    signature = {name: tf.TensorSpec(x.shape, x.dtype) for name, x in model.input.items()}
    scores = np.full(model.output["logits"].shape[-1], _NEVER, "float32")
    scores[among] = 0

    @tf.function(input_signature=[signature])
    def best(inputs):
        logits = tf.cast(model(inputs, training=False)["logits"], "float32")[:, 0]
        return tf.math.top_k(logits + scores, count).indices

    return lambda inputs: best(inputs).numpy()


def _next_tokens(model, top_k, temperature):
    """Build a function from inputs to the next tokens and cumulative shares, both (B, K)."""
    signature = {name: tf.TensorSpec(x.shape, x.dtype) for name, x in model.input.items()}
    top_k = min(top_k, model.output["logits"].shape[-1])

    @tf.function(input_signature=[signature])
    def best(inputs):
        last = tf.reduce_sum(inputs["padding_mask"], 1) - 1
        logits = tf.gather(model(inputs, training=False)["logits"], last, batch_dims=1)
        values, ids = tf.math.top_k(tf.cast(logits, "float32"), top_k)
        return ids, tf.cumsum(tf.nn.softmax(values / temperature), axis=1)

    return lambda inputs: [x.numpy() for x in best(inputs)]
