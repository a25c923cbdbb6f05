// The page: a form for a text, or two, and the answer as text and a table.

import { loadModel, ModelError, type Result, type Settings, type TextModel } from "./tfnlp.js";

const HANGUL = /[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]/;

function query<T extends Element>(selector: string): T {
  return document.querySelector<T>(selector)!;
}

function element(name: string, ...children: (Node | string)[]): HTMLElement {
  const node = document.createElement(name);
  node.append(...children);
  return node;
}

/** Return an element with a text of a reader or a model, whose language may be another. */
function foreign(name: string, text: string): HTMLElement {
  const node = element(name, text);
  node.dir = "auto";
  if (HANGUL.test(text)) node.lang = "ko";
  return node;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function table(caption: string, header: string[], rows: string[][], marked: boolean[]) {
  const head = element("tr", ...header.map((cell) => column(cell)));
  const lines = rows.map(([name, ...cells], i) => {
    const first = foreign("th", name);
    first.setAttribute("scope", "row");
    const line = element("tr", first, ...cells.map((cell) => element("td", cell)));
    if (marked[i]) line.className = "best";
    return line;
  });
  const whole = element(
    "table", element("caption", caption), element("thead", head), element("tbody", ...lines),
  );
  whole.className = "plain";
  const box = element("div", whole);
  box.className = "wide";
  return box;
}

function column(cell: string): HTMLElement {
  const node = element("th", cell);
  node.setAttribute("scope", "col");
  return node;
}

function probabilityTable(labels: string[], probabilities: number[], chosen: string[]) {
  const rows = labels.map((label, i) => [label, percent(probabilities[i])]);
  const marked = labels.map((label) => chosen.includes(label));
  return table("Probabilities", ["label", "probability"], rows, marked);
}

/** Return what the page shows for a result, the sentence first. */
function shown(result: Result, settings: Settings, second?: string): HTMLElement[] {
  if ("label" in result) {
    const labels = probabilityTable(settings.labels, result.probabilities, [result.label]);
    return [foreign("p", `Label: ${result.label}.`), labels];
  }
  if ("labels" in result) {
    const names = result.labels.length ? result.labels.join(", ") : "none";
    const labels = probabilityTable(settings.labels, result.probabilities, result.labels);
    return [foreign("p", `Labels: ${names}.`), labels];
  }
  if ("tags" in result) {
    const rows = result.tags.map(({ text, tag, score }) => [text, tag, percent(score)]);
    const marked = result.tags.map(({ tag }) => tag !== "O");
    const header = [settings.task.unit === "character" ? "character" : "word", "tag", "probability"];
    return [element("p", `Tags: ${rows.length}.`), table("Tags", header, rows, marked)];
  }
  if ("score" in result) {
    const { text, start, end, probability } = result;
    if (!text) return [element("p", `No answer in the text, ${percent(probability)}.`)];
    const source = foreign("p", second!.slice(0, start));
    source.append(element("mark", text), second!.slice(end));
    source.className = "source";
    return [foreign("p", `Answer: ${text}, ${percent(probability)}.`), source];
  }
  return [element("p", `A vector of ${result.embedding.length} numbers.`)];
}

const LABELS: Record<string, [string, string?]> = {
  answerer: ["Question", "Text that holds the answer"],
  embedder: ["Text", "Text to compare with, or none"],
};

function prepareForm(settings: Settings) {
  const pair = settings.task.pairs ? "Second text" : undefined;
  const [first, second] = LABELS[settings.kind] ?? ["Text", pair];
  query('label[for="text"]').textContent = first;
  if (second) {
    query('label[for="second"]').textContent = second;
    query<HTMLTextAreaElement>("#second").required = settings.kind !== "embedder";
    query<HTMLElement>("#second").parentElement!.hidden = false;
  }
  document.title = settings.name;
  query("h1").textContent = settings.name;
  query<HTMLElement>("form").hidden = false;
}

async function answer(model: TextModel, text: string, second?: string): Promise<HTMLElement[]> {
  const compared = model.settings.kind === "embedder" && second ? second : undefined;
  const result = await model.run(text, second);
  const lines = shown(result, model.settings, second);
  let truncated = "truncated" in result && result.truncated;
  if (compared && "embedding" in result) {
    const other = await model.run(compared);
    if (!("embedding" in other)) return lines;
    const cosine = result.embedding.reduce((sum, x, i) => sum + x * other.embedding[i], 0);
    lines.unshift(element("p", `Cosine similarity: ${cosine.toFixed(3)}.`));
    truncated ||= other.truncated;
  }
  if (truncated) {
    const what = model.settings.kind === "answerer" ? "question" : "text";
    const most = model.settings.max_length;
    const sentence = `The ${what} is too long for the model, which read its beginning alone; a row has at most ${most} tokens.`;
    lines.push(element("p", sentence));
  }
  return lines;
}

async function main() {
  const status = query("#status");
  const say = (error: unknown) => {
    const text = error instanceof Error ? error.message : String(error);
    status.textContent = error instanceof ModelError ? text : `The model cannot be run (${text}).`;
  };
  status.textContent = "The model is loading.";
  const model = await loadModel(".").catch(say);
  if (!model) return;
  prepareForm(model.settings);
  status.textContent = "The model is ready.";
  query("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const [text, second] = ["#text", "#second"].map(
      (field) => query<HTMLTextAreaElement>(field).value,
    );
    status.textContent = "";
    const asked = query<HTMLElement>("#second").parentElement!.hidden ? undefined : second;
    const start = performance.now();
    await answer(model, text, asked).then((lines) => {
      query("#result").replaceChildren(...lines);
      status.textContent = `Done in ${(performance.now() - start).toFixed(1)} ms.`;
    }, say);
  });
}

await main();
