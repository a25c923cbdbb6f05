// Tags of words and of characters from the probabilities of tokens, as in Python.

import { markEnd, type Row } from "./rows";
import type { Token } from "./tokens";

export interface Tag {
  text: string;
  start: number;
  end: number;
  tag: string;
  score: number;
}

/** Probabilities of a window, (L, C), by rows. */
export type Matrix = ArrayLike<number>[];

function best(row: ArrayLike<number>): number {
  let place = 0;
  for (let i = 1; i < row.length; i += 1) if (row[i] > row[place]) place = i;
  return place;
}

/**
 * Return the tag of each word, that of its first token.
 *
 * `tokens` are those of each word, over whose concatenation the windows go. A word in two windows
 * has its tag from the one with more words on both sides of it.
 */
export function wordTags(
  text: string, spans: [number, number][], tokens: Token[][], rows: Row[], outputs: Matrix[],
  labels: string[],
): Tag[] {
  const numbers = new Map(tokens.flatMap((own, i) => (own.length ? [[own[0], i] as const] : [])));
  const none = labels.includes("O") ? "O" : labels[0];
  const tags = spans.map(([start, end]) => ({
    text: text.slice(start, end), start, end, tag: none, score: 1,
  }));
  const margins = spans.map(() => -1);
  rows.forEach((row, i) => {
    const begun = row.tokens.flatMap((token, k) => (numbers.has(token) ? [[token, k] as const] : []));
    begun.forEach(([token, k], place) => {
      const margin = Math.min(place, begun.length - 1 - place);
      const word = numbers.get(token)!;
      if (margin <= margins[word]) return;
      margins[word] = margin;
      const probabilities = outputs[i][row.first + k];
      tags[word].tag = labels[best(probabilities)];
      tags[word].score = probabilities[best(probabilities)];
    });
  });
  return tags;
}

interface Tagged {
  margin: number;
  end: number;
  tag: string;
  score: number;
}

/**
 * Return the tag of each code point of a text.
 *
 * The first of a token has its tag, the others are inside of the same entity; so is what has no
 * token between two parts of an entity. Of several tokens of one code point the first counts.
 */
export function characterTags(
  text: string, rows: Row[], outputs: Matrix[], labels: string[],
): Tag[] {
  const byStart = new Map<number, Tagged>();
  rows.forEach((row, i) => {
    let covered = 0;
    let kept: Tagged | undefined;
    row.tokens.forEach((token, k) => {
      const margin = Math.min(k, row.tokens.length - 1 - k);
      const end = markEnd(text, token.end);
      if (token.start < covered) {
        if (kept && end > kept.end) kept.end = end;
      } else if (margin > (byStart.get(token.start)?.margin ?? -1)) {
        const probabilities = outputs[i][row.first + k];
        const label = best(probabilities);
        kept = { margin, end, tag: labels[label], score: probabilities[label] };
        byStart.set(token.start, kept);
      } else kept = undefined;
      covered = Math.max(covered, end);
    });
  });
  let start = 0;
  let open: Tagged | undefined;
  const tags = Array.from(text, (character) => {
    const end = start + character.length;
    const begun = byStart.get(start);
    open = begun ?? open;
    const inside = open && start < open.end;
    const later = open && (open.tag === "O" ? "O" : `I${open.tag.slice(1)}`);
    const tag = begun ? begun.tag : inside ? later : undefined;
    const tagged = { text: character, start, end, tag, score: open?.score ?? 1 };
    start = end;
    return tagged;
  });
  const known = tags.flatMap(({ tag }, i) => (tag === undefined ? [] : [i]));
  known.slice(1).forEach((next, k) => {
    const [before, after] = [tags[known[k]].tag!, tags[next].tag!];
    if (after.startsWith("I") && after.slice(1) === before.slice(1)) {
      for (let i = known[k] + 1; i < next; i += 1) tags[i].tag = after;
    }
  });
  return tags.map((tagged) => ({ ...tagged, tag: tagged.tag ?? "O" }));
}
