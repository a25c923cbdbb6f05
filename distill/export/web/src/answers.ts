// The best answer from the logits of its first and last token, as in Python.

import { markEnd, type Row } from "./rows";

export interface Answer {
  text: string;
  start: number;
  end: number;
  score: number;
  probability: number;
}

export interface Logits {
  starts: ArrayLike<number>;
  ends: ArrayLike<number>;
}

const CANDIDATES = 20; // of first and of last tokens in a window
const MOST_TOKENS = 30; // of an answer

/** Return the likeliest answer; its text is empty where `nullAnswers` and there is none. */
export function bestAnswer(
  text: string, rows: Row[], logits: Logits[], nullAnswers: boolean,
): Answer {
  const scores = new Map<string, { start: number; end: number; score: number }>();
  const add = (start: number, end: number, score: number) => {
    const before = scores.get(`${start} ${end}`);
    if (!before || before.score < score) scores.set(`${start} ${end}`, { start, end, score });
  };
  rows.forEach(({ tokens, first }, i) => {
    const likeliest = (values: ArrayLike<number>) =>
      [...tokens.keys()].sort((a, b) => values[first + b] - values[first + a]).slice(0, CANDIDATES);
    const { starts, ends } = logits[i];
    const lasts = likeliest(ends);
    for (const a of likeliest(starts)) {
      for (const b of lasts) {
        if (a > b || b >= a + MOST_TOKENS) continue;
        const score = Math.fround(starts[first + a] + ends[first + b]);
        add(tokens[a].start, markEnd(text, tokens[b].end), score);
      }
    }
  });
  const answers = [...scores.values()];
  if (nullAnswers) {
    const nulls = logits.map(({ starts, ends }) => Math.fround(starts[0] + ends[0]));
    answers.push({ start: 0, end: 0, score: Math.min(...nulls) });
  }
  if (!answers.length) answers.push({ start: 0, end: 0, score: 0 });
  const top = answers.reduce((a, b) => (b.score > a.score ? b : a));
  const total = answers.reduce((sum, { score }) => sum + Math.exp(score - top.score), 0);
  return { text: text.slice(top.start, top.end), ...top, probability: 1 / total };
}
