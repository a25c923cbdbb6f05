// Rows of ids: single texts, pairs, and windows over long texts, as `Tokenizer` in Python.

import type { Pieces, Token } from "./tokens";

/** A run of the model. `tokens` are those of the second text of two; `first` is their place. */
export interface Row {
  ids: number[];
  segmentIds: number[];
  tokens: Token[];
  first: number;
}

function framed(pieces: Pieces, ...texts: Token[][]): Row {
  const [tokens, others] = texts.map((text) => text.map((token) => token.id));
  const { first, between, last, segment } = pieces;
  if (others === undefined) {
    const ids = [first, ...tokens, last];
    return { ids, segmentIds: ids.map(() => 0), tokens: texts[0], first: 1 };
  }
  const before = [first, ...tokens, ...between];
  const after = [...others, last];
  const segmentIds = [...before.map(() => 0), ...after.map(() => segment)];
  return { ids: [...before, ...after], segmentIds, tokens: texts[1], first: before.length };
}

/** Return the row of a text, or of two; the longer one is cut until both fit. */
export function encode(pieces: Pieces, longest: number, text: string, second?: string) {
  const tokens = pieces.tokens(text);
  if (second === undefined) {
    const room = longest - 2;
    return { row: framed(pieces, tokens.slice(0, room)), truncated: tokens.length > room };
  }
  const others = pieces.tokens(second);
  const room = longest - 2 - pieces.between.length;
  const truncated = tokens.length + others.length > room;
  const [kept, keptOfOthers] = truncated ? shares(tokens.length, others.length, room)
    : [tokens.length, others.length];
  const row = framed(pieces, tokens.slice(0, kept), others.slice(0, keptOfOthers));
  return { row, truncated };
}

function shares(first: number, second: number, room: number): [number, number] {
  const [short, long] = [Math.min(first, second), Math.max(first, second)];
  const less = 2 * short > room ? Math.floor(room / 2) : short;
  const more = 2 * short > room ? room - less : Math.min(long, room - less);
  return first > second ? [more, less] : [less, more];
}

function cut(tokens: Token[], room: number, stride: number): Token[][] {
  const step = room - stride;
  const count = 1 + Math.ceil(Math.max(0, tokens.length - room) / step);
  return Array.from({ length: count }, (_, i) => tokens.slice(i * step, i * step + room));
}

/** Return the windows of a tagger, which share `stride` tokens. */
export function windows(pieces: Pieces, longest: number, tokens: Token[], stride: number) {
  return cut(tokens, longest - 2, stride).map((part) => framed(pieces, part));
}

/** Return the windows of an answerer over a text, each behind the question. */
export function questionWindows(
  pieces: Pieces, longest: number, question: string, text: string,
  { stride, longestQuestion }: { stride: number; longestQuestion: number },
) {
  const limit = Math.min(longestQuestion, Math.floor((longest - 3) / 2));
  const whole = pieces.tokens(question);
  let asked = whole;
  // What is left of a word may have more pieces than the word had.
  for (let end = limit; asked.length > limit; end -= 1) {
    asked = end > 0 ? pieces.tokens(question.slice(0, markEnd(question, whole[end - 1].end))) : [];
  }
  const room = longest - 3 - asked.length;
  const parts = cut(pieces.tokens(text), room, Math.min(stride, Math.floor(room / 2)));
  return {
    rows: parts.map((part) => framed(pieces, asked, part)),
    truncated: whole.length > limit,
  };
}

const MARK = /^[\p{M}\u1160-\u11ff\ud7b0-\ud7fb]/u;

/** Return the end of a span, moved behind the marks of its last character. */
export function markEnd(text: string, end: number): number {
  if (end === 0) return end;
  for (let mark = MARK.exec(text.slice(end)); mark; mark = MARK.exec(text.slice(end))) {
    end += mark[0].length;
  }
  return end;
}
