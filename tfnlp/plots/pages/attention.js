"use strict";

// ---- Numbers: 8 bits each, decoded when they are first looked at. ----

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
const chosen = { text: 0, row: 0, head: 0, view: "weights" };
const VIEW_NAMES = { weights: "after the softmax", scores: "before the softmax" };
// Characters of a text in the list of texts, which is as wide as its longest name.
const LONGEST_NAME = 60;
const HANGUL = /[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]/;

function bytes(object, name) {
  const key = `${name} bytes`;
  object[key] ??= Uint8Array.from(atob(object[name]), (c) => c.charCodeAt(0));
  return object[key];
}

// A head's numbers in one view: `at(i, j)` is null for what is hidden, undefined for what is left out.
function matrix(entry, tokens, viewName, head) {
  const view = entry.views[viewName] ?? entry.views.scores;
  const rows = tokens[entry.rows];
  const columns = tokens[entry.columns];
  const [low, high] = [view.low[head], view.high[head]];
  const size = rows.length * columns.length;
  const values = bytes(view, "data");
  const hidden = entry.hidden ? bytes(entry, "hidden") : null;
  const shared = hidden && hidden.length * 8 < size * entry.heads;
  const isHidden = (i, j) => {
    if (!hidden) return false;
    const bit = (shared ? 0 : head * size) + i * columns.length + j;
    return ((hidden[bit >> 3] >> (7 - (bit & 7))) & 1) === 1;
  };
  const isShare = viewName === "weights";
  // Of shares in long rows the roots are kept.
  const roots = isShare && entry.kept;
  const number = (byte) => (roots ? (byte / 255) ** 2 : low + (byte / 255) * (high - low));
  const scaled = (place) => number(values[place]);
  const top = (i) => {
    const index = bytes(entry, "index");
    const start = (head * rows.length + i) * entry.kept;
    return Array.from({ length: entry.kept }, (_, n) => {
      const place = start + n;
      return [index[2 * place] + 256 * index[2 * place + 1], scaled(place)];
    });
  };
  const at = (i, j) => {
    if (isHidden(i, j)) return null;
    if (!entry.kept) return scaled(head * size + i * columns.length + j);
    return top(i).find(([column]) => column === j)?.[1];
  };
  // What each of the others has on average, in a row that keeps its largest entries alone.
  const rest = (i) => number(bytes(view, "rest")[head * rows.length + i]);
  const reach = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const shade = (x) => (isShare ? Math.sqrt(x) : x / reach);
  const text = (x) => (isShare ? (100 * x).toFixed(entry.kept ? 1 : 0) : x.toFixed(1));
  return { rows, columns, at, top, rest, shade, text, isShare, low, high, isHidden };
}

// ---- Colours: two ramps of the style sheet, so that PNG, SVG and tables agree. ----

let ramps;

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => {
    const hex = style.getPropertyValue(name).trim();
    return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
  };
  const [paper, warm, hot, cold, coldest] =
    ["--heat-0", "--heat-1", "--heat-2", "--cold-1", "--cold-2"].map(colour);
  ramps = { up: [paper, warm, hot], down: [paper, cold, coldest], ink: style.color };
  ramps.ink = style.getPropertyValue("--ink").trim();
  ramps.paper = style.getPropertyValue("--paper").trim();
}

function rgb(shade) {
  const ramp = shade < 0 ? ramps.down : ramps.up;
  const place = Math.min(1, Math.abs(shade)) * 2;
  const step = Math.min(1, Math.floor(place));
  return ramp[step].map((x, n) => Math.round(x + (ramp[step + 1][n] - x) * (place - step)));
}

const css = (parts) => `rgb(${parts.join(",")})`;

// Black or white, whichever stands out from the colour behind it.
function inkOn(parts) {
  const light = parts.map((x) => (x <= 10 ? x / 3294 : ((x / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] > 0.179 ? "#000000" : "#ffffff";
}

// ---- Elements. ----

function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

function tokenText(token) {
  return token.replace(/\n/g, "⏎").replace(/\t/g, "⇥") || "∅";
}

function header(token, scope) {
  const cell = element("th", { scope }, element("span", {}, tokenText(token)));
  if (HANGUL.test(token)) cell.lang = "ko";
  return cell;
}

function paint(cell, shade) {
  const colour = rgb(shade);
  cell.style.backgroundColor = css(colour);
  cell.style.color = inkOn(colour);
}

const signed = (x, digits = 0) => {
  const size = Math.abs(100 * x).toFixed(digits);
  return `${Number(size) === 0 ? "" : x > 0 ? "+" : "−"}${size}`;
};
const entryName = (entry) => `${entry.name} ${entry.stream && `${entry.stream} stream`}`.trim();
const currentText = () => data.texts[chosen.text];
const currentEntries = () =>
  (currentText().rows[chosen.row] ?? []).map((number) => currentText().entries[number]);
// A teacher may have more heads or fewer than its student.
const headOf = (entry) => Math.min(chosen.head, entry.heads - 1);

// ---- Small maps, drawn when they are seen. ----

const waiting = new Map();
const observer = "IntersectionObserver" in window
  ? new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen) if (isIntersecting) drawNow(target);
    }, { rootMargin: "100px" })
  : null;

function drawWhenSeen(canvas, draw) {
  waiting.set(canvas, draw);
  if (observer) observer.observe(canvas);
  else drawNow(canvas);
}

function drawNow(canvas) {
  waiting.get(canvas)?.();
  waiting.delete(canvas);
  observer?.unobserve(canvas);
  canvas.dataset.drawn = "yes";
}

function drawMap(canvas, m) {
  canvas.width = m.columns.length;
  canvas.height = m.rows.length;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  const put = (i, j, shade) => {
    image.data.set([...rgb(shade), 255], 4 * (i * canvas.width + j));
  };
  for (let i = 0; i < canvas.height; i++) {
    const known = m.kept ? new Map(m.top(i)) : null;
    const rest = known && m.rest(i);
    for (let j = 0; j < canvas.width; j++) {
      const x = known ? known.get(j) ?? rest : m.at(i, j);
      put(i, j, m.isHidden(i, j) ? 0 : m.shade(x ?? 0));
    }
  }
  context.putImageData(image, 0, 0);
}

function mapOf(entry, view, head) {
  return { ...matrix(entry, currentText().tokens, view, head), kept: entry.kept };
}

// ---- The overview: a button for each head. ----

function drawOverview() {
  const text = currentText();
  byId("all-heads").hidden = byId("one-head").hidden = !text.entries.length;
  const most = Math.max(0, ...text.entries.map((entry) => entry.heads));
  const top = element("tr", {}, element("th", { scope: "col" }, "layer"));
  for (let head = 0; head < most; head++) {
    top.append(element("th", { scope: "col" }, `head ${head + 1}`));
  }
  const body = element("tbody");
  text.rows.forEach((numbers, row) => {
    for (const number of numbers) {
      const entry = text.entries[number];
      const line = element("tr", {}, element("th", { scope: "row" }, entryName(entry)));
      for (let head = 0; head < entry.heads; head++) {
        line.append(element("td", {}, headButton(entry, row, head)));
      }
      body.append(line);
    }
  });
  const table = element("table", { className: "heads" }, element("thead", {}, top), body);
  table.setAttribute("aria-label", "All heads: a row for each layer, a column for each head");
  byId("overview").replaceChildren(table);
}

function headButton(entry, row, head) {
  const canvas = element("canvas");
  canvas.setAttribute("aria-hidden", "true");
  const button = element("button", { type: "button", tabIndex: -1 }, canvas);
  button.setAttribute("aria-label", `${entryName(entry)}, head ${head + 1}. ${entry.sentences[head]}`);
  Object.assign(button.dataset, { row, head });
  button.addEventListener("click", () => choose({ row, head }));
  button.addEventListener("focus", () => say(button.getAttribute("aria-label")));
  namePlaces(canvas, entry, head);
  drawWhenSeen(canvas, () => drawMap(canvas, mapOf(entry, chosen.view, head)));
  return button;
}

// Name the tokens of a map under the pointer, which has no room for labels.
function namePlaces(canvas, entry, head) {
  canvas.addEventListener("pointermove", (event) => {
    if (!hasMoved(event)) return;
    const box = canvas.getBoundingClientRect();
    const m = mapOf(entry, chosen.view, head);
    const i = Math.floor(((event.clientY - box.top) / box.height) * m.rows.length);
    const j = Math.floor(((event.clientX - box.left) / box.width) * m.columns.length);
    if (m.rows[i] !== undefined && m.columns[j] !== undefined) sayEntry(entry, head, i, j);
  });
}

function markChosen() {
  for (const button of byId("overview").querySelectorAll("button")) {
    const { row, head } = button.dataset;
    const pressed = Number(row) === chosen.row && Number(head) === chosen.head;
    button.setAttribute("aria-pressed", String(pressed));
    button.tabIndex = pressed ? 0 : -1;
  }
}

// ---- One head: tables of numbers, side by side. ----

function drawHead() {
  const entries = currentEntries();
  const panels = entries.map((entry) => panel(entry, headOf(entry)));
  byId("panels").replaceChildren(...panels);
  byId("head-title").textContent = entries.length
    ? `${entries[0].name}, head ${chosen.head + 1}: ${viewName(chosen.view)}`
    : "One head";
}

function panel(entry, head) {
  const m = mapOf(entry, chosen.view, head);
  const name = `${entryName(entry)}, head ${head + 1}`;
  const caption = element("figcaption", {}, element("strong", {}, name), ` — ${entry.sentences[head]} `);
  const shares = Object.entries(entry.shares);
  if (shares.length) {
    const parts = shares.map(([term, x]) => `${term} ${Math.round(100 * x[head])} %`).join(", ");
    caption.append(element("br"), `Of the variance of the scores: ${parts}.`);
  }
  const table = entry.kept ? topTable(entry, m, head, name) : heatTable(entry, m, head, name);
  const children = [caption, legend(m), element("div", { className: "frame" }, table)];
  if (entry.kept) {
    const canvas = element("canvas", { className: "whole" });
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${name}: the entries of the table, in their places`);
    namePlaces(canvas, entry, head);
    drawWhenSeen(canvas, () => drawMap(canvas, m));
    children.splice(2, 0, canvas);
    const title = "gradient × input in this head, of the tokens that are looked at";
    children.push(element("p", { className: "soft" }, title), strip(m.columns, entry.saliency[head]));
  }
  return element("figure", { className: "panel" }, ...children);
}

function legend(m) {
  const canvas = element("canvas", { width: 100, height: 1 });
  canvas.setAttribute("aria-hidden", "true");
  const context = canvas.getContext("2d");
  const [low, high] = m.isShare ? [0, 1] : [m.low, m.high];
  for (let x = 0; x < 100; x++) {
    context.fillStyle = css(rgb(m.shade(low + (x / 99) * (high - low))));
    context.fillRect(x, 0, 1, 1);
  }
  const ends = m.isShare ? ["0 %", "100 %"] : [low.toFixed(1), high.toFixed(1)];
  const unit = m.isShare ? "percent of a row" : "scores";
  return element("div", { className: "legend" }, ends[0], canvas, `${ends[1]} (${unit})`);
}

function heatTable(entry, m, head, name) {
  const table = element("table", { className: "heat" });
  table.setAttribute("role", "grid");
  table.setAttribute("aria-label", `${name}, ${viewName(chosen.view)}. ${entry.sentences[head]}`);
  const corner = element("span", {}, entry.cosines ? "" : "looks at");
  const top = element("tr", {}, element("th", { scope: "col" }, corner));
  m.columns.forEach((token) => top.append(header(token, "col")));
  const body = element("tbody");
  m.rows.forEach((token, i) => {
    const line = element("tr", {}, header(token, "row"));
    m.columns.forEach((_, j) => line.append(heatCell(m, i, j)));
    body.append(line);
  });
  const foot = element("tr", {}, element("th", { scope: "row" }, "gradient × input, %"));
  entry.saliency[head].forEach((x) => {
    const cell = element("td", { tabIndex: -1 }, signed(x));
    paint(cell, x);
    foot.append(cell);
  });
  table.append(element("thead", {}, top), body, element("tfoot", {}, foot));
  answer(table, entry, head);
  return table;
}

// Make a table answer to the pointer and to keys; Tab stops once in it.
function answer(table, entry, head) {
  const onCell = (event) => {
    const cell = event.target.closest("td");
    if (cell) pointAt(table, cell, entry, head);
  };
  table.querySelector("td").tabIndex = 0;
  table.addEventListener("pointermove", (event) => hasMoved(event) && onCell(event));
  table.addEventListener("focusin", onCell);
  table.addEventListener("keydown", moveInTable);
}

let pointer = "";

// Browsers send a move when the page scrolls below a pointer at rest, as keys make it.
function hasMoved(event) {
  const before = pointer;
  pointer = `${event.clientX} ${event.clientY}`;
  return pointer !== before;
}

function heatCell(m, i, j) {
  const x = m.at(i, j);
  if (x === null) return element("td", { className: "hidden", tabIndex: -1, title: "hidden" }, "–");
  const cell = element("td", { tabIndex: -1 }, m.text(x));
  paint(cell, m.shade(x));
  return cell;
}

function topTable(entry, m, head, name) {
  const top = element("tr", {}, element("th", { scope: "col" }, "token"));
  for (let n = 1; n <= entry.kept; n++) top.append(element("th", { scope: "col" }, `${n}.`));
  top.append(element("th", { scope: "col" }, "each other"));
  const body = element("tbody");
  m.rows.forEach((token, i) => {
    const line = element("tr", {}, header(token, "row"));
    for (const [j, x] of m.top(i)) {
      const cell = element("td", { tabIndex: -1 });
      cell.dataset.column = j;
      if (!m.isHidden(i, j)) {
        cell.append(`${tokenText(m.columns[j])} ${m.text(x)}`);
        if (HANGUL.test(m.columns[j])) cell.lang = "ko";
        paint(cell, m.shade(x));
      }
      line.append(cell);
    }
    const rest = m.rest(i);
    const others = element("td", { tabIndex: -1 }, m.text(rest));
    others.dataset.rest = others.textContent;
    paint(others, m.shade(rest));
    line.append(others);
    body.append(line);
  });
  const table = element("table", { className: "heat" }, element("thead", {}, top), body);
  table.setAttribute("role", "grid");
  const label = `${name}, ${viewName(chosen.view)}: the ${entry.kept} largest entries of each row`;
  table.setAttribute("aria-label", `${label}. ${entry.sentences[head]}`);
  answer(table, entry, head);
  return table;
}

function pointAt(table, cell, entry, head) {
  for (const th of table.querySelectorAll("th.on")) th.classList.remove("on");
  const line = cell.parentElement;
  line.cells[0].classList.add("on");
  table.tHead.rows[0].cells[cell.cellIndex].classList.add("on");
  if (cell.dataset.rest) {
    const from = tokenText(currentText().tokens[entry.rows][line.sectionRowIndex]);
    return say(`${entryName(entry)}, head ${head + 1}: “${from}” has ${cell.dataset.rest} for each other token on average`);
  }
  const j = Number(cell.dataset.column ?? cell.cellIndex - 1);
  if (line.parentElement.tagName === "TBODY") return sayEntry(entry, head, line.sectionRowIndex, j);
  const token = tokenText(currentText().tokens[entry.columns][j]);
  say(`${entryName(entry)}, head ${head + 1}: “${token}” has ${signed(entry.saliency[head][j])} % of gradient × input`);
}

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

// Arrow keys move by a cell, or by a button in it, Home and End to the ends of the row.
function moveInTable(event) {
  const cell = event.target.closest("td");
  if (!cell || !(event.key in MOVES || event.key === "Home" || event.key === "End")) return;
  event.preventDefault();
  const [down, right] = MOVES[event.key] ?? [0, 0];
  const table = cell.closest("table");
  const cells = table.rows[cell.parentElement.rowIndex + down]?.cells ?? [];
  const ends = { Home: 1, End: cells.length - 1 };
  const target = cells[ends[event.key] ?? cell.cellIndex + right];
  if (target?.tagName !== "TD") return;
  const [before, now] = [cell, target].map((each) => each.querySelector("button") ?? each);
  before.tabIndex = -1;
  now.tabIndex = 0;
  now.focus({ preventScroll: true });
  // Not below the headers that stay in sight, nor partly out of it.
  const [above, beside] = [table.tHead.offsetHeight, target.parentElement.cells[0].offsetWidth];
  table.parentElement.style.scrollPadding = `${above}px 0 0 ${beside}px`;
  now.scrollIntoView({ block: "nearest", inline: "nearest" });
}

// ---- The line of words. ----

function say(sentence) {
  byId("readout").textContent = sentence;
}

function sayEntry(entry, head, i, j) {
  if (entry.cosines) {
    const { rows, columns, at } = entry.cosines;
    return say(`${entry.name}: ${rows[i]} and ${columns[j]} have the cosine ${at(i, j).toFixed(2)}`);
  }
  const tokens = currentText().tokens;
  const [from, to] = [tokens[entry.rows][i], tokens[entry.columns][j]].map(tokenText);
  const parts = Object.keys(entry.views).map((view) => {
    const m = matrix(entry, tokens, view, head);
    const x = m.at(i, j);
    if (x === null) return null;
    if (x === undefined) return view === "weights" ? "not among the largest" : "";
    return view === "weights" ? `${m.text(x)} %` : `${view === "scores" ? "score" : view} ${x.toFixed(2)}`;
  });
  const numbers = parts.includes(null) ? "hidden" : parts.filter(Boolean).join(", ");
  say(`${entryName(entry)}, head ${head + 1}: “${from}” looks at “${to}”: ${numbers}`);
}

// ---- The text, coloured by gradient × input. ----

function drawWords() {
  const text = currentText();
  const lists = Object.entries(text.saliency).map(([name, values]) => {
    const title = `${name}: gradient × input of ${text.prediction}`;
    return [element("p", { className: "soft" }, title), strip(text.tokens[name], values)];
  });
  const said = text.answer ? [element("p", {}, `The model's answer: ${text.answer}.`)] : [];
  byId("words").replaceChildren(...said, ...lists.flat());
}

// A list of tokens, each with its share.
function strip(tokens, values) {
  const largest = Math.max(...values.map(Math.abs)) || 1;
  const digits = largest < 0.1 ? 1 : 0;
  const items = values.map((x, i) => {
    const share = element("small", {}, `${signed(x, digits)} %`);
    const item = element("li", {}, tokenText(tokens[i]), share);
    if (HANGUL.test(tokens[i])) item.lang = "ko";
    paint(item, x / largest);
    return item;
  });
  return element("ol", { className: "strip" }, ...items);
}

// ---- Position encodings. ----

function drawPositions() {
  const tables = currentText().positions;
  byId("positions").hidden = !tables.length;
  const figures = tables.map((table) => {
    const canvas = element("canvas", { className: "whole vectors", width: table.width });
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${table.name}: a row for each position, a column for each of ${table.width} dimensions`);
    drawWhenSeen(canvas, () => drawEncoding(canvas, table));
    const details = element("details", {}, element("summary", {}, "Similarity, as a table"));
    details.addEventListener("toggle", () => details.open && fillSimilarity(details, table), { once: true });
    const caption = element("figcaption", {}, `${table.name}, ${table.width} dimensions`);
    const picture = element("canvas", { className: "whole square" });
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", `${table.name}: cosine of each two rows`);
    drawWhenSeen(picture, () => drawMap(picture, similarity(table)));
    const pictures = element("div", { className: "beside" }, canvas, picture);
    return element("figure", {}, caption, pictures, details);
  });
  byId("encodings").replaceChildren(...figures);
}

function similarity(table) {
  const entry = { rows: "labels", columns: "labels", views: table.views, hidden: "", kept: 0, heads: 1 };
  const m = matrix(entry, { labels: table.labels }, "similarity", 0);
  return { ...m, text: (x) => x.toFixed(2), shade: (x) => x };
}

function fillSimilarity(details, table) {
  const m = similarity(table);
  const entry = { name: table.name, stream: "", saliency: [[]], sentences: [""], cosines: m };
  const grid = heatTable(entry, m, 0, table.name);
  grid.setAttribute("aria-label", `${table.name}: cosine of each two rows`);
  grid.tFoot.remove();
  details.append(element("div", { className: "frame" }, grid));
}

function drawEncoding(canvas, table) {
  const values = bytes(table, "data");
  const reach = Math.max(Math.abs(table.low), Math.abs(table.high)) || 1;
  canvas.height = table.labels.length;
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  values.forEach((x, n) => {
    const value = table.low + (x / 255) * (table.high - table.low);
    image.data.set([...rgb(value / reach), 255], 4 * n);
  });
  context.putImageData(image, 0, 0);
}

// ---- Pictures to save: one list of shapes, written as SVG or painted as PNG. ----

const CELL = 28;

function shapes() {
  const list = [];
  let left = 0;
  let height = 0;
  for (const entry of currentEntries()) {
    const head = headOf(entry);
    const m = mapOf(entry, chosen.view, head);
    const longest = (tokens) => Math.max(...tokens.map((token) => tokenText(token).length));
    const [x0, y0] = [left + 20 + 9 * longest(m.rows), 50 + 9 * longest(m.columns)];
    const title = `${entryName(entry)}, head ${head + 1}, ${viewName(chosen.view)}`;
    list.push({ text: title, x: left + 10, y: 22, size: 15, fill: ramps.ink });
    m.rows.forEach((token, i) => {
      const y = y0 + CELL * i;
      list.push({ text: tokenText(token), x: x0 - 6, y: y + 19, size: 12, end: true, fill: ramps.ink });
      if (entry.kept) list.push(...restOf(m, i, x0, y));
      const cells = entry.kept ? m.top(i).map(([j]) => j) : m.columns.keys();
      for (const j of cells) {
        const value = m.at(i, j);
        const colour = rgb(value === null ? 0 : m.shade(value));
        list.push({ x: x0 + CELL * j, y, width: CELL, height: CELL, fill: css(colour) });
        const text = value === null ? "–" : m.text(value);
        list.push({ text, x: x0 + CELL * j + CELL / 2, y: y + 18, size: 10, middle: true, fill: inkOn(colour) });
      }
    });
    m.columns.forEach((token, j) => {
      list.push({ text: tokenText(token), x: x0 + CELL * j + 18, y: y0 - 6, size: 12, turned: true, fill: ramps.ink });
    });
    left = Math.max(x0 + CELL * m.columns.length, left + 10 + 8.5 * title.length) + 20;
    height = Math.max(height, y0 + CELL * m.rows.length + 15);
  }
  return { list, width: left, height };
}

// What a row has beside its largest entries, a shape for each run of places that may be seen.
function restOf(m, i, left, y) {
  const fill = css(rgb(m.shade(m.rest(i))));
  const list = [];
  let start = 0;
  for (let j = 0; j <= m.columns.length; j++) {
    if (j < m.columns.length && !m.isHidden(i, j)) continue;
    if (j > start) list.push({ x: left + CELL * start, y, width: CELL * (j - start), height: CELL, fill });
    start = j + 1;
  }
  return list;
}

function svgText() {
  const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const { list, width, height } = shapes();
  const parts = list.map((s) => {
    if (s.text === undefined) {
      return `<rect x="${s.x}" y="${s.y}" width="${s.width}" height="${s.height}" fill="${s.fill}"/>`;
    }
    const anchor = s.end ? "end" : s.middle ? "middle" : "start";
    const turn = s.turned ? ` transform="rotate(-90 ${s.x} ${s.y})"` : "";
    return `<text x="${s.x}" y="${s.y}" font-size="${s.size}" text-anchor="${anchor}" fill="${s.fill}"${turn}>${escape(s.text)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif"><rect width="100%" height="100%" fill="${ramps.paper}"/>${parts.join("")}</svg>`;
}

function paintPicture() {
  const { list, width, height } = shapes();
  // Twice as many pixels, but within what browsers allow.
  const scale = Math.min(2, 16000 / Math.max(width, height));
  const canvas = element("canvas", { width: width * scale, height: height * scale });
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.fillStyle = ramps.paper;
  context.fillRect(0, 0, width, height);
  for (const s of list) {
    context.fillStyle = s.fill;
    if (s.text === undefined) {
      context.fillRect(s.x, s.y, s.width, s.height);
      continue;
    }
    context.save();
    context.translate(s.x, s.y);
    if (s.turned) context.rotate(-Math.PI / 2);
    context.font = `${s.size}px sans-serif`;
    context.textAlign = s.end ? "right" : s.middle ? "center" : "left";
    context.fillText(s.text, 0, 0);
    context.restore();
  }
  return canvas;
}

function save(blob, ending) {
  const link = element("a", { href: URL.createObjectURL(blob) });
  link.download = `attention_${currentEntries()[0].name}_${chosen.head + 1}.${ending}`.replace(/ /g, "_");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// ---- Controls. ----

const viewName = (view) => VIEW_NAMES[view] ?? view;

function fillSelect(select, names, value) {
  select.replaceChildren(...names.map(([key, name]) => element("option", { value: key }, name)));
  select.value = String(value);
}

function choose(change) {
  const overviewChanges = "text" in change || "view" in change;
  Object.assign(chosen, change);
  const text = currentText();
  chosen.row = Math.min(chosen.row, Math.max(0, text.rows.length - 1));
  const [entry] = currentEntries();
  if (entry) {
    chosen.head = Math.min(chosen.head, entry.heads - 1);
    if (!(chosen.view in entry.views)) chosen.view = "weights";
    fillSelect(byId("layer"), text.rows.map(([n], row) => [row, text.entries[n].name]), chosen.row);
    const heads = Array.from({ length: entry.heads }, (_, n) => [n, n + 1]);
    fillSelect(byId("head"), heads, chosen.head);
    fillSelect(byId("view"), Object.keys(entry.views).map((v) => [v, viewName(v)]), chosen.view);
  }
  if (overviewChanges) drawOverview();
  if ("text" in change) {
    drawWords();
    drawPositions();
  }
  markChosen();
  drawHead();
}

function start() {
  readColours();
  byId("app").hidden = false;
  // An address may name a place, such as attention.html#text=1&layer=3&head=7&view=scores.
  const asked = new URLSearchParams(location.hash.slice(1));
  const place = (name, most) => Math.min(Math.max(1, Number(asked.get(name)) || 1), most) - 1;
  const text = place("text", data.texts.length);
  const row = place("layer", data.texts[text].rows.length || 1);
  const short = (name) => (name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name);
  const names = data.texts.map((each, n) => [n, short(each.texts.join(" / "))]);
  if (names.length > 1) {
    const select = element("select", { id: "text" });
    fillSelect(select, names, text);
    select.addEventListener("change", () => choose({ text: Number(select.value) }));
    byId("texts").append(element("label", {}, "Text ", select));
  }
  byId("layer").addEventListener("change", (event) => choose({ row: Number(event.target.value) }));
  byId("head").addEventListener("change", (event) => choose({ head: Number(event.target.value) }));
  byId("view").addEventListener("change", (event) => choose({ view: event.target.value }));
  byId("overview").addEventListener("keydown", moveInTable);
  byId("svg").addEventListener("click", () => {
    save(new Blob([svgText()], { type: "image/svg+xml" }), "svg");
  });
  byId("png").addEventListener("click", () => paintPicture().toBlob((blob) => save(blob, "png")));
  dark.addEventListener("change", () => {
    readColours();
    choose({ text: chosen.text });
  });
  choose({ text, row, head: place("head", 1000), view: asked.get("view") ?? "weights" });
}

start();
