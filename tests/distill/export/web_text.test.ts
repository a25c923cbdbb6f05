import assert from "node:assert/strict";
import { test } from "node:test";
import { bestAnswer } from "../../../distill/export/web/src/answers";
import { encode, markEnd, questionWindows, windows } from "../../../distill/export/web/src/rows";
import { characterTags, wordTags } from "../../../distill/export/web/src/tags";
import { WordPiece } from "../../../distill/export/web/src/tokens";
import { Unigram } from "../../../distill/export/web/src/unigram";
import { wordSpans } from "../../../distill/export/web/src/words";

const TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "film", "##s", "!", "σ"];
const RULES = { ranges: { " @ ": [33, 33], "": [0x200b, 0x200b] }, changed: { A: "a", Σ: "σ" } };
const pieces = new WordPiece(
  {
    model: {
      type: "WordPiece",
      unk_token: "[UNK]",
      continuing_subword_prefix: "##",
      max_input_chars_per_word: 100,
      vocab: Object.fromEntries(TOKENS.map((token, id) => [token, id])),
    },
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: null,
  },
  RULES,
);

test("tokens have the places of the text, in UTF-16 units", () => {
  const tokens = pieces.tokens("A fil\u200bms! 🙂x Σ");
  assert.deepEqual(
    tokens.map(({ id, start, end }) => [TOKENS[id], start, end]),
    [["a", 0, 1], ["film", 2, 7], ["##s", 7, 8], ["!", 8, 9], ["[UNK]", 10, 13], ["σ", 14, 15]],
  );
});

test("of a pair the longer text is cut", () => {
  const { row, truncated } = encode(pieces, 8, "a a a a a a", "film !");
  assert.deepEqual(row.ids, [2, 4, 4, 4, 3, 5, 7, 3]);
  assert.deepEqual(row.segmentIds, [0, 0, 0, 0, 0, 1, 1, 1]);
  assert.ok(truncated && !encode(pieces, 8, "a", "film !").truncated);
});

test("XLM-R's pieces are found in what NFKC leaves, and are framed", () => {
  const vocab = ["<s>", "<pad>", "</s>", "<unk>", "▁", "▁fi", "lm", "각"].map((x, i) => [x, -i]);
  const parts = { pre_tokenizer: null, post_processor: null, decoder: null, added_tokens: [] };
  const json = { model: { type: "Unigram", unk_id: 3, vocab }, normalizer: null, ...parts };
  const rules = { ranges: { NFKC: [0xfb01, 0xfb01], " ": [0x200b, 0x200b] }, changed: {} };
  const xlmR = new Unigram(json, rules);
  assert.deepEqual(xlmR.tokens("ﬁlm\u200b  각 zz").map(({ id }) => id), [5, 6, 4, 7, 4, 3]);
  const { row } = encode(xlmR, 8, "film film", "film");
  assert.deepEqual(row.ids, [0, 5, 6, 2, 2, 5, 6, 2]);
  assert.deepEqual(row.segmentIds, row.ids.map(() => 0));
});

test("windows share tokens, and a question is cut", () => {
  const rows = windows(pieces, 6, pieces.tokens("a a a a a a !"), 1);
  assert.deepEqual(rows.map((row) => row.ids.length), [6, 6]);
  assert.equal(rows[1].tokens[3].id, 7);
  const limits = { stride: 0, longestQuestion: 2 };
  const asked = questionWindows(pieces, 9, "a a a", "film !", limits);
  assert.ok(asked.truncated);
  assert.deepEqual(asked.rows[0].ids, [2, 4, 4, 3, 5, 7, 3]);
});

test("words lose prefixes and suffixes, except whole ones", () => {
  const spans = (text: string) =>
    wordSpans(text, { prefixes: ["("], suffixes: [".", ")"], whole: ["a."] }).map(
      ([start, end]) => text.slice(start, end),
    );
  assert.deepEqual(spans(" (film). a.\u3000🙂."), ["(", "film", ")", ".", "a.", "🙂", "."]);
});

test("a word without a token is outside, and characters follow the first token", () => {
  const labels = ["O", "B-x", "I-x"];
  const begun = [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8]];
  const outputs = [[[1, 0, 0], ...begun, [1, 0, 0]]];
  const tokens = [pieces.tokens("films"), []];
  const rows = windows(pieces, 8, tokens.flat(), 0);
  const tags = wordTags("films \u200b", [[0, 5], [6, 7]], tokens, rows, outputs, labels);
  assert.deepEqual(tags.map(({ tag, score }) => [tag, score]), [["B-x", 0.8], ["O", 1]]);
  const characters = characterTags("films !", rows, outputs, labels).map(({ tag }) => tag);
  assert.deepEqual(characters, ["B-x", "I-x", "I-x", "I-x", "I-x", "O", "O"]);
});

test("the best answer holds its marks, or is empty", () => {
  const text = "a film\u0301 a";
  const { rows } = questionWindows(pieces, 12, "a", "a film a", { stride: 0, longestQuestion: 2 });
  const logits = [{ starts: [5, 0, 0, 0, 4, 0, 0], ends: [5, 0, 0, 0, 4, 0, 0] }];
  const answer = bestAnswer(text, rows, logits, false);
  assert.deepEqual([answer.text, answer.score], ["film\u0301", 8]);
  assert.equal(bestAnswer(text, rows, logits, true).text, "");
  assert.equal(markEnd(text, 6), 7);
});
