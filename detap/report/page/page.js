// One state drives every section. It is stored in the URL fragment, so a view can be shared as a
// link. Names reach the page only through textContent.
(() => {
"use strict";

const model = JSON.parse(document.getElementById("data").textContent);
const analysis = model.analysis;
const classes = model.classes;
const K = classes.length;

// --- elements and numbers

const $ = (id) => document.getElementById(id);

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "click") node.addEventListener("click", value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

function draw(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const NOTHING = "–";
const integer = (value) => value === null || value === undefined ? NOTHING : value.toLocaleString("en-US");

// A value above 0 is never shown as 0, and a value below 1 never as 1.
function fraction(value, decimals = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return NOTHING;
  const least = 10 ** -decimals;
  if (value > 0 && value < least / 2) value = least;
  else if (value < 1 - 1e-9 && value >= 1 - least / 2) value = 1 - least;
  return value.toFixed(decimals).replace(/^-(0\.0*)$/, "$1");
}

function signed(value, decimals = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return NOTHING;
  if (value === 0) return (0).toFixed(decimals);
  const size = Math.max(Math.abs(value), 10 ** -decimals);
  return (value > 0 ? "+" : "−") + size.toFixed(decimals);
}

const ratio = (part, all) => all ? part / all : null;
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Labels of error types and results.
const LABELS = {
  "classification": "Classification", "localization": "Localization", "both": "Both",
  "duplicate": "Duplicate", "background": "Background", "missed": "Missed",
  "false_positives": "All FP", "false_negatives": "All FN",
  "true-positive": "True positive", "ignored": "Ignored", "outside-area-range": "Outside the area range",
  "not-exhaustive": "Class not exhaustively annotated", "unverified": "Class not verified", "zero-area": "Zero area",
  "beyond-max-dets": "Beyond max dets", "matched": "Matched", "near-miss": "Near miss",
};
const DESCRIPTIONS = {
  "classification": "well localized, wrong class",
  "localization": "correct class, poorly localized",
  "both": "overlaps another class, poorly localized",
  "duplicate": "ground truth is already matched",
  "background": "IoU below 0.1 with every ground truth",
  "missed": "ground truth without a matching or near-miss detection",
  "false_positives": "all false positives removed",
  "false_negatives": "all unmatched ground truths removed",
};
const ERROR_TYPES = ["classification", "localization", "both", "duplicate", "background"];

// --- the state

const DEFAULTS = {
  class: "", type: "", score: "", sort: "", filter: "", pair: "", list: "worst", hide: "",
  image: "", at: "",
};
const state = { ...DEFAULTS };

// A link may come from another run: invalid values are replaced by defaults.
const VALID = {
  class: (value) => classes.includes(value),
  type: (value) => ERROR_TYPES.includes(value) || value === "missed",
  score: (value) => value.trim() !== "" && Number.isFinite(Number(value)),
  list: (value) => Object.hasOwn(LISTS, value),
  image: (value) => /^\d+$/.test(value) && Number(value) < gallery.entries.length,
};

function readFragment() {
  const text = location.hash.slice(1);
  if (text && !text.includes("=")) return false;  // a plain anchor is no state
  const given = new URLSearchParams(text);
  for (const key of Object.keys(DEFAULTS)) {
    const value = given.get(key) ?? DEFAULTS[key];
    state[key] = value === DEFAULTS[key] || VALID[key]?.(value) !== false ? value : DEFAULTS[key];
  }
  return true;
}

function writeFragment() {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) if (value !== DEFAULTS[key]) params.set(key, value);
  const text = params.toString();
  if (text !== location.hash.slice(1)) {
    history.replaceState(null, "", text ? `#${text}` : location.href.split("#")[0]);
  }
}

const sections = [];
let later = 0, settled = 0;

function set(change) {
  const changed = new Set(Object.keys(change).filter((key) => state[key] !== change[key]));
  if (!changed.size) return;
  Object.assign(state, change);
  show(changed);
  // A dragged slider changes the state often, and browsers limit how often addresses may change.
  clearTimeout(later);
  later = setTimeout(writeFragment, 150);
}

function show(changed) {
  const onlyScore = changed && changed.size === 1 && changed.has("score");
  let waiting = false;
  for (const [keys, update, patient] of sections) {
    if (changed && !keys.some((key) => changed.has(key))) continue;
    if (onlyScore && patient) waiting = true; else update(changed);
  }
  if (waiting) {
    clearTimeout(settled);
    settled = setTimeout(() => {
      for (const [keys, update, patient] of sections) if (patient && keys.includes("score")) update(changed);
    }, 120);
  }
}

// Patient sections wait until the slider rests.
const section = (keys, update, patient = false) => sections.push([keys, update, patient]);

const chosenClass = () => state.class === "" ? -1 : classes.indexOf(state.class);

// --- counts over the score

const op = analysis && analysis.operating;
const steps = op ? op.scores.length : 0;

// counts[class][outcome][step]: outcome 0 is a true positive, then the error types; cumulative.
const counts = !op ? [] : op.added.map((outcomes) => outcomes.map((text) => {
  const out = new Int32Array(steps);
  let sum = 0;
  if (steps) text.split(",").forEach((value, index) => { sum += +value; out[index] = sum; });
  return out;
}));
const totals = !op ? [] : [0, 1, 2, 3, 4, 5].map((outcome) => {
  const out = new Int32Array(steps);
  for (const outcomes of counts) for (let n = 0; n < steps; n++) out[n] += outcomes[outcome][n];
  return out;
});
const truthsOf = (k) => k < 0 ? analysis.truths.reduce((a, b) => a + b, 0) : analysis.truths[k];

function point(k, step) {
  const outcomes = k < 0 ? totals : counts[k];
  const right = step < 0 ? 0 : outcomes[0][step];
  let wrong = 0;
  if (step >= 0) for (let kind = 1; kind < 6; kind++) wrong += outcomes[kind][step];
  const lost = truthsOf(k) - right;
  return {
    right, wrong, lost, precision: ratio(right, right + wrong), recall: ratio(right, right + lost),
    f1: ratio(2 * right, 2 * right + wrong + lost), perImage: ratio(wrong, model.images),
  };
}

// The last step whose score is not below the requested one; the best F1 by default.
function stepNow() {
  if (!steps) return -1;
  if (state.score === "") return op.best ?? steps - 1;
  const requested = Number(state.score);
  let low = -1, high = steps - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (op.scores[middle] >= requested) low = middle; else high = middle - 1;
  }
  return Math.max(low, 0);
}
const scoreNow = () => steps ? op.scores[stepNow()] : null;

// --- the bar

function fillBar() {
  const pick = $("class");
  pick.append(make("option", { value: "" }, "All classes"));
  classes.forEach((name) => pick.append(make("option", { value: name }, name)));
  pick.addEventListener("change", () => set({ class: pick.value, pair: "" }));
  const type = $("type");
  type.append(make("option", { value: "" }, "All errors"));
  for (const kind of [...ERROR_TYPES, "missed"]) type.append(make("option", { value: kind }, LABELS[kind]));
  type.addEventListener("change", () => set({ type: type.value }));
  const slider = $("score");
  slider.max = Math.max(steps - 1, 0);
  slider.disabled = steps < 2;
  slider.addEventListener("input", () => chooseStep(steps - 1 - slider.valueAsNumber));
  $("best").addEventListener("click", () => {
    const k = chosenClass();
    const best = k < 0 ? op.best : op.best_by_class[k];
    if (best !== null) chooseStep(best);
  });
  $("reset").addEventListener("click", () => set({ ...DEFAULTS, list: state.list }));
}

const chooseStep = (step) => set({ score: step === op.best ? "" : String(op.scores[step]) });

function updateBar() {
  const step = stepNow(), k = chosenClass(), at = point(k, step);
  $("class").value = k < 0 ? "" : state.class;
  $("type").value = state.type;
  $("score").value = steps - 1 - step;
  const text = fraction(scoreNow());
  $("score-text").textContent = text;
  $("score").setAttribute("aria-valuetext",
    `${text}, precision ${fraction(at.precision, 3)}, recall ${fraction(at.recall, 3)}`);
  $("status").textContent = `${k < 0 ? "All classes" : state.class}, score >= ${text}, ` +
    (state.type ? LABELS[state.type] : "all errors");
}

// --- tables

const head = (...cells) => make("thead", {}, make("tr", {}, ...cells));
const heading = (text, kind) => make("th", { scope: "col", class: kind }, text);
const cell = (text, kind) => make("td", { class: kind }, text);

function tiles(id, entries) {
  $(id).replaceChildren(...entries.map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

// The sample of a line or area in a legend or on a button.
const swatch = (...marks) => draw("svg", { viewBox: "0 0 30 10", "aria-hidden": "true" }, ...marks);

function meter(part) {
  if (part === null) return "";
  const bar = make("span", { class: "meter", "aria-hidden": "true" });
  if (part > 0) bar.append(make("i"));  // of nothing there is no bar, not even a thin one
  if (part > 0) bar.firstChild.style.width = `${Math.min(1, part) * 100}%`;
  return bar;
}

// --- the change against the baseline

let allChanges = false;

function swing(gain, largest) {
  const bar = make("i", { class: gain < 0 ? "loss" : "gain" });
  bar.style.width = `${largest ? Math.abs(gain) / largest * 100 : 0}%`;
  return make("span", { class: "swing", "aria-hidden": "true" }, bar);
}

function changeRow(row, largest, label) {
  const known = row.before !== null && row.now !== null;
  const difference = known ? row.now - row.before : null;
  const gain = known && row.lower_is_better ? -difference : difference;
  return make("tr", {}, label, cell(fraction(row.before)), cell(fraction(row.now)),
    cell(signed(difference), gain > 0 ? "up" : gain < 0 ? "down" : ""),
    make("td", {}, known ? swing(gain, largest) : ""));
}

function updateChange() {
  const { metrics, classes: rows } = model.baseline;
  const size = (row) => row.before === null || row.now === null ? -1 : Math.abs(row.now - row.before);
  const titles = (first) => head(heading(first), heading("before"), heading("now"),
    heading("diff"), make("td", {}));
  const most = (list) => Math.max(...list.map(size), 1e-12);
  $("change-metrics").replaceChildren(titles("metric"), make("tbody", {},
    ...metrics.map((row) => changeRow(row, most(metrics), make("th", { scope: "row" }, row.name)))));
  const sorted = rows.slice().sort((a, b) => size(b) - size(a)).filter((row) => size(row) > 0);
  const shown = allChanges ? sorted : sorted.slice(0, 8);
  $("change-classes").replaceChildren(titles("class"), make("tbody", {},
    ...shown.map((row) => changeRow(row, most(sorted),
      make("th", { scope: "row" }, classButton(classes.indexOf(row.name)))))));
  if (!shown.length) $("change-classes").append(make("tbody", {}, make("tr", {}, cell("No class changed."))));
  $("change-more").hidden = shown.length === sorted.length;
  $("change-more").textContent = `Show all ${sorted.length}`;
}

function classButton(k) {
  const name = classes[k];
  return make("button", {
    type: "button", title: name, "aria-pressed": String(state.class === name),
    click: () => set({ class: state.class === name ? "" : name, pair: "" }),
  }, name);
}

// --- TIDE errors

function updateErrors() {
  const k = chosenClass(), step = stepNow();
  const of = (type) => ({
    name: type.name, before: type.before,
    deltaAp: k < 0 ? type.delta_ap : type.delta_ap_by_class[k],
    count: k < 0 ? type.count : type.count_by_class[k],
    atScore: countAtScore(type.name, k, step),
  });
  const all = analysis.errors.types.map(of);
  const six = all.slice(0, 6).sort((a, b) => (b.deltaAp || 0) - (a.deltaAp || 0));
  const largest = Math.max(...all.map((row) => row.deltaAp || 0), 1e-12);
  const compared = k < 0 && all.some((row) => row.before !== null);
  const row = (entry, choice) => make("tr", { class: state.type === entry.name ? "chosen" : null },
    make("th", { scope: "row" },
      choice ? make("button", { type: "button", "aria-pressed": String(state.type === entry.name),
        click: () => set({ type: state.type === entry.name ? "" : entry.name }) }, LABELS[entry.name])
        : LABELS[entry.name],
      make("span", { class: "description wide" }, DESCRIPTIONS[entry.name])),
    make("td", {}, meter((entry.deltaAp || 0) / largest), signed(entry.deltaAp)),
    cell(integer(entry.count)), cell(integer(entry.atScore)),
    ...(compared ? [cell(integer(entry.before))] : []));
  $("errors-ap").textContent = fraction(k < 0 ? analysis.average_precision
    : analysis.average_precision_by_class[k]) + (k < 0 ? "" : ` for ${state.class}`);
  const focus = document.activeElement && $("errors-table").contains(document.activeElement)
    ? document.activeElement.textContent : null;
  $("errors-table").replaceChildren(
    head(heading("type"), heading("dAP"), heading("count"),
      heading(`score >= ${fraction(scoreNow(), 2)}`), ...(compared ? [heading("before")] : [])),
    make("tbody", {}, ...six.map((entry) => row(entry, true))),
    make("tbody", { class: "across" }, ...all.slice(6).map((entry) => row(entry, false))));
  if (focus) [...$("errors-table").querySelectorAll("button")]
    .find((button) => button.textContent === focus)?.focus();
}

function countAtScore(name, k, step) {
  const at = point(k, step);
  if (name === "missed" || name === "false_negatives") return name === "missed" ? null : at.lost;
  if (name === "false_positives") return at.wrong;
  return step < 0 ? 0 : (k < 0 ? totals : counts[k])[ERROR_TYPES.indexOf(name) + 1][step];
}

// --- the operating point

const LINES = [["Precision", "#0072b2", []], ["Recall", "#d55e00", [8, 4]], ["F1", "#009e73", [2, 3]]];
const BRIGHT = { "#0072b2": "#56b4e9", "#d55e00": "#f0975a", "#009e73": "#3fc79a" };
const dark = matchMedia("screen and (prefers-color-scheme: dark)");
const shade = (value) => dark.matches ? BRIGHT[value] || value : value;

function updateTiles() {
  const k = chosenClass(), step = stepNow(), at = point(k, step);
  tiles("operating-tiles", [
    ["Score threshold", fraction(scoreNow())], ["F1", fraction(at.f1)], ["Precision", fraction(at.precision)],
    ["Recall", fraction(at.recall)], ["FP per image", fraction(at.perImage, 3)],
    ["True positives", integer(at.right)], ["False positives", integer(at.wrong)],
    ["False negatives", integer(at.lost)],
  ]);
  const best = k < 0 ? op.best : op.best_by_class[k];
  const where = best === null ? "no detections" :
    `best F1 ${fraction(point(k, best).f1)} at ${fraction(op.scores[best])}`;
  $("operating-scope").textContent = `${k < 0 ? "all classes pooled" : state.class}, ${where}`;
}

const charts = {};

const axes = () => [30, 44].map((size) => ({
  stroke: color("--muted"), font: "12px system-ui, sans-serif",
  grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, size,
}));

function chart(id, options, data) {
  const container = $(id);
  charts[id]?.destroy();
  container.replaceChildren();
  const plot = new uPlot({
    width: Math.max(container.clientWidth, 200), height: container.clientHeight || 300,
    legend: { show: false }, ...options,
  }, data, container);
  charts[id] = plot;
  return plot;
}

function buildOperating() {
  if (!steps) return;
  const options = {
    scales: { x: { time: false }, y: { range: [0, 1.02] } },
    axes: axes(),
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    series: [{}, ...LINES.map(([name, ink, dash]) =>
      ({ label: name, stroke: shade(ink), width: 2, dash, spanGaps: false }))],
    hooks: { draw: [markScore] },
  };
  const plot = chart("operating-chart", options, operatingData());
  plot.over.addEventListener("click", () => {
    if (plot.cursor.idx !== null) chooseStep(steps - 1 - plot.cursor.idx);
  });
  $("operating-legend").replaceChildren(...LINES.map(([name, ink, dash]) => make("span", {},
    swatch(draw("line", { x1: 0, x2: 30, y1: 5, y2: 5, stroke: shade(ink), "stroke-width": 2.5,
      "stroke-dasharray": dash.join(" ") })), name)));
}

function operatingData() {
  const k = chosenClass(), rows = [[], [], [], []];
  for (let step = steps - 1; step >= 0; step--) {
    const at = point(k, step);
    rows[0].push(op.scores[step]); rows[1].push(at.precision);
    rows[2].push(at.recall); rows[3].push(at.f1);
  }
  return rows;
}

function markScore(plot) {
  const x = Math.round(plot.valToPos(scoreNow(), "x", true));
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = color("--text");
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.setLineDash([]);
  ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
  ctx.restore();
}

// --- the class table

const BASE = model.table.columns.map((column, index) => ({ ...column, of: (k) => model.table.rows[k][index] }));
const AT_SCORE = !analysis ? [] : [
  ["precision_at", "precision", "precision"], ["recall_at", "recall at", "recall"], ["f1_at", "F1", "f1"],
].map(([key, title, name]) => ({ key, heading: title, kind: "fraction", live: true, of: (k) => point(k, stepNow())[name] }));
const firstCount = BASE.findIndex((column) => column.kind === "count");
const COLUMNS = [...BASE.slice(0, firstCount), ...AT_SCORE, ...BASE.slice(firstCount)];
const shown = (column, value) => column.kind === "fraction" ? fraction(value) : integer(value);

function sortedClasses() {
  const text = state.filter.toLowerCase();
  const list = classes.map((_, k) => k).filter((k) => classes[k].toLowerCase().includes(text));
  const falls = state.sort.startsWith("-"), key = state.sort.replace(/^-/, "");
  if (key === "name") {
    list.sort((a, b) => (falls ? -1 : 1) * classes[a].localeCompare(classes[b], "en"));
    return list;
  }
  const column = COLUMNS.find((entry) => entry.key === key);
  if (!column) return list;
  const values = classes.map((_, k) => column.of(k));
  const known = (k) => values[k] !== null && values[k] !== undefined;
  return [...list.filter(known).sort((a, b) => (falls ? -1 : 1) * (values[a] - values[b])),
    ...list.filter((k) => !known(k))];
}

function sortBy(key, name) {
  const first = name ? key : `-${key}`, second = name ? `-${key}` : key;
  set({ sort: state.sort === first ? second : state.sort === second ? "" : first });
}

function sortHeading(key, title, kind) {
  const sorted = state.sort.replace(/^-/, "") === key
    ? (state.sort.startsWith("-") ? "descending" : "ascending") : null;
  return make("th", { scope: "col", class: kind, "aria-sort": sorted },
    make("button", { type: "button", "data-key": key, click: () => sortBy(key, key === "name") }, title));
}

let liveCells = [];
let order = [];

function updateClasses(changed) {
  const onlyScore = changed && changed.size === 1 && changed.has("score");
  const bySlider = COLUMNS.some((column) => column.live && column.key === state.sort.replace(/^-/, ""));
  if (onlyScore && !bySlider) {
    for (const [node, column, k] of liveCells) node.textContent = shown(column, column.of(k));
    return;
  }
  const active = document.activeElement, table = $("classes-table");
  const focus = table.contains(active) ? active.dataset.key || active.textContent : null;
  liveCells = [];
  order = sortedClasses();
  const rows = order.map((k) => make("tr", { class: classes[k] === state.class ? "chosen" : null },
    make("th", { scope: "row" }, classButton(k)),
    ...COLUMNS.map((column) => {
      const node = cell(shown(column, column.of(k)), column.live && column === AT_SCORE[0] ? "first" : null);
      if (column.live) liveCells.push([node, column, k]);
      return node;
    })));
  const foot = COLUMNS.map((column) => {
    const index = BASE.indexOf(column);
    if (index >= 0) return cell(shown(column, model.table.totals[index]));
    const node = cell(fraction(column.of(-1)), column === AT_SCORE[0] ? "first" : null);
    liveCells.push([node, column, -1]);
    return node;
  });
  table.replaceChildren(
    head(sortHeading("name", "class", "name"), ...COLUMNS.map((column) =>
      sortHeading(column.key, column.live ? `${column.heading.replace(" at", "")} at score` : column.heading,
        column === AT_SCORE[0] ? "first" : null))),
    make("tbody", {}, ...rows),
    make("tfoot", {}, make("tr", {}, make("th", { scope: "row" }, "mean / sum"), ...foot)));
  if ($("filter").value !== state.filter) $("filter").value = state.filter;
  $("classes-count").textContent = order.length === K ? `${K} classes` : `${order.length} of ${K} classes`;
  if (focus) [...table.querySelectorAll("button")]
    .find((button) => (button.dataset.key || button.textContent) === focus)?.focus();
}

function downloadCsv() {
  // A name that begins like a formula gets an apostrophe, so that no spreadsheet runs it.
  const quote = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r']/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [["class", ...COLUMNS.map((column) => column.key)],
    ...order.map((k) => [classes[k], ...COLUMNS.map((column) => column.of(k))])];
  const text = lines.map((line) => line.map(quote).join(",")).join("\r\n") + "\r\n";
  const link = make("a", { download: "classes.csv", href: URL.createObjectURL(new Blob([text], { type: "text/csv" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// --- precision over recall

const curved = !analysis ? [] : classes.map((_, k) => k).filter((k) => analysis.curves[k]);

function buildCurves() {
  if (!curved.length) return;
  const x = Array.from({ length: 101 }, (_, n) => n / 100);
  const k = chosenClass();
  const options = {
    scales: { x: { time: false, range: [0, 1] }, y: { range: [0, 1.02] } },
    axes: axes(),
    focus: { alpha: 0.18 },
    cursor: { focus: { prox: 24 }, points: { show: false }, drag: { x: false, y: false } },
    series: [{}, ...curved.map((c) => ({
      label: classes[c], stroke: c === k || k < 0 ? color("--accent") : color("--strong"),
      width: c === k ? 3 : 1.25, alpha: c === k ? 1 : k < 0 ? (curved.length > 40 ? 0.3 : 0.55) : 0.2, points: { show: false },
    }))],
    hooks: {
      draw: [markPoint],
      setSeries: [(plot, index) => describeCurve(index === null ? -1 : curved[index - 1])],
    },
  };
  const plot = chart("curves-chart", options, [x, ...curved.map((c) => analysis.curves[c].map((v) => v / 1e4))]);
  let near = -1;
  plot.hooks.setSeries.push((_, index) => { near = index === null ? -1 : curved[index - 1]; });
  plot.over.addEventListener("click", () => {
    if (near >= 0) set({ class: state.class === classes[near] ? "" : classes[near], pair: "" });
  });
  describeCurve(-1);
}

function markPoint(plot) {
  const k = chosenClass();
  if (k < 0 || !steps) return;
  const at = point(k, stepNow());
  if (at.precision === null || at.recall === null) return;
  const { ctx } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.arc(plot.valToPos(at.recall, "x", true), plot.valToPos(at.precision, "y", true), 6 * devicePixelRatio, 0, 7);
  ctx.fillStyle = color("--accent"); ctx.strokeStyle = color("--ground"); ctx.lineWidth = 2 * devicePixelRatio;
  ctx.fill(); ctx.stroke();
  ctx.restore();
}

function describeCurve(near) {
  const k = near >= 0 ? near : chosenClass();
  $("curves-text").textContent = k < 0 ? `${curved.length} classes.`
    : `${classes[k]}: AP ${fraction(analysis.average_precision_by_class[k])}.`;
}

function updateCurveTable() {
  const k = chosenClass();
  const at = Array.from({ length: 11 }, (_, n) => 10 * n);
  $("curves-table").replaceChildren(
    head(heading("class"), heading("AP", "fraction"), ...at.map((n) => heading(`at ${(n / 100).toFixed(1)}`, "fraction"))),
    make("tbody", {}, ...curved.filter((c) => k < 0 || c === k).map((c) => make("tr", {},
      make("th", { scope: "row" }, classes[c]), cell(fraction(analysis.average_precision_by_class[c]), "fraction"),
      ...at.map((n) => cell(fraction(analysis.curves[c][n] / 1e4, 3), "fraction"))))));
}

// --- confusion

const MANY = 40, TOO_MANY = 150;
let matrixAsked = K <= MANY;
const BACKGROUND = "background";
const className = (k) => k === K ? BACKGROUND : classes[k];

// The step of the matrix nearest to the slider's.
function confusionStep() {
  const { steps: known } = analysis.confusion, now = stepNow();
  let best = 0;
  known.forEach((step, index) => { if (Math.abs(step - now) < Math.abs(known[best] - now)) best = index; });
  return best;
}

function ramp(part) {
  const ends = dark.matches ? [[27, 32, 38], [125, 182, 255]] : [[245, 247, 249], [10, 75, 160]];
  return ends[0].map((low, n) => Math.round(low + (ends[1][n] - low) * part));
}

function luminance([r, g, b]) {
  const [x, y, z] = [r, g, b].map((v) => v / 255 <= 0.04045 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}

// Black or white, whichever has more contrast: at least 4.58 to 1 on any ground.
function paint(node, part) {
  const ground = ramp(Math.sqrt(part)), light = luminance(ground);
  node.style.backgroundColor = `rgb(${ground.join(" ")})`;
  node.style.color = 1.05 / (light + 0.05) > (light + 0.05) / 0.05 ? "#fff" : "#000";
}

const pairKey = (row, column) => `${className(row)}\u2192${className(column)}`;

function openPair(row, column) {
  set({ pair: pairKey(row, column), list: "errors", class: "", type: "" });
  $("gallery").scrollIntoView();
  $("gallery-lists").querySelector("[aria-pressed=true]")?.focus({ preventScroll: true });
}

let drawnMatrix = "";

function updateConfusion() {
  const index = confusionStep(), k = chosenClass();
  const key = `${index} ${k} ${matrixAsked} ${dark.matches}`;
  if (key === drawnMatrix) return;
  drawnMatrix = key;
  const cells = analysis.confusion.cells.map((entry) => [entry[0], entry[1], entry[2 + index]]).filter((entry) => entry[2]);
  const step = analysis.confusion.steps[index];
  $("confusion-text").textContent = steps ? `Score >= ${fraction(op.scores[step])}, the computed threshold nearest to the slider.` : "";
  const sums = new Array(K + 1).fill(0);
  for (const [row, , n] of cells) sums[row] += n;
  listConfusions(cells, sums, k);
  $("confusion-region").hidden = !matrixAsked || K > TOO_MANY;
  $("confusion-more").hidden = matrixAsked || K > TOO_MANY;
  if (matrixAsked && K <= TOO_MANY) drawMatrix(cells, sums, k);
}

function listConfusions(cells, sums, k) {
  const wrong = cells.filter(([row, column]) => row !== column && row < K && column < K && (k < 0 || row === k || column === k));
  wrong.sort((a, b) => b[2] - a[2] || sums[a[0]] - sums[b[0]] || a[0] - b[0] || a[1] - b[1]);
  const top = wrong.slice(0, K > MANY ? 24 : 9);
  $("confusion-list").replaceChildren(
    make("h3", {}, top.length ? (k < 0 ? "Most confused classes" : `Most confused with ${state.class}`) : "No misclassifications."),
    make("ol", {}, ...top.map(([row, column, n]) => make("li", {},
      make("button", { type: "button", class: "link", click: () => openPair(row, column) },
        `${className(row)} predicted as ${className(column)}`),
      make("span", {}, `${integer(n)} (${fraction(100 * n / sums[row], 1)} %)`)))));
}

function drawMatrix(cells, sums, k) {
  const grid = new Map(cells.map(([row, column, n]) => [row * (K + 1) + column, n]));
  const numbers = Array.from({ length: K + 1 }, (_, n) => n);
  const predicted = (n) => n === K ? "missed" : classes[n];
  const columns = numbers.map((n) => make("th", { scope: "col", class: n === k ? "chosen" : null, title: className(n) }, make("span", {}, predicted(n))));
  const rows = numbers.map((row) => make("tr", {},
    make("th", { scope: "row", class: row === k ? "chosen" : null, title: className(row) }, make("span", {}, className(row))),
    ...numbers.map((column) => {
      const n = grid.get(row * (K + 1) + column);
      const node = make("td", { tabindex: "-1", "data-cell": `${row},${column}`, class: n ? "some" : null });
      if (n) {
        node.textContent = n > 9999 ? `${Math.round(n / 1000)}k` : n;
        node.title = `${className(row)} → ${predicted(column)}: ${integer(n)}`;
        paint(node, n / sums[row]);
      } else if (row !== K || column !== K) paint(node, 0);
      return node;
    })));
  const table = $("confusion-table");
  table.replaceChildren(head(make("td", {}), ...columns), make("tbody", {}, ...rows));
  table.querySelector("td[data-cell]").tabIndex = 0;
}

// The matrix is one stop of the Tab key; arrows move in it, Enter opens the images of a cell.
function matrixKeys(event) {
  const node = event.target.closest("td[data-cell]");
  if (!node) return;
  const [row, column] = node.dataset.cell.split(",").map(Number);
  const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (move) {
    const next = $("confusion-table").querySelector(`td[data-cell="${row + move[0]},${column + move[1]}"]`);
    if (next) { node.tabIndex = -1; next.tabIndex = 0; next.focus(); }
    event.preventDefault();
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    matrixCell(node);
  }
}

function matrixCell(node) {
  if (!node || !node.textContent) return;
  const [row, column] = node.dataset.cell.split(",").map(Number);
  if (row === column) set({ class: classes[row], pair: "" });
  else if (column === K) { set({ class: classes[row], type: "missed", list: "worst", pair: "" }); $("gallery").scrollIntoView(); }
  else openPair(row, column);
}

// --- calibration and histograms

const W = 330, H = 220, LEFT = 40, BOTTOM = 24;

function frame(largest, ticks, label, scale = (v) => v) {
  const svg = draw("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label });
  const y = (v) => (H - BOTTOM) - scale(v) / scale(largest) * (H - BOTTOM - 10);
  for (const tick of ticks) {
    svg.append(draw("line", { class: tick ? "axis" : "base", x1: LEFT, x2: W, y1: y(tick), y2: y(tick) }));
    svg.append(draw("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, tick >= 1000 ? `${tick / 1000}k` : tick));
  }
  return [svg, y];
}

// Ticks of a square-root scale: 0, powers of ten, and two or five of the last one near the top.
function powers(largest) {
  const tens = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].filter((n) => n <= largest && n * 200 > largest);
  const top = [5, 2].map((n) => n * tens.at(-1)).find((n) => n <= largest);
  return [0, ...tens, ...(top ? [top] : [])];
}

function below(svg, texts) {
  svg.append(...texts.map((value, n) => draw("text", { x: LEFT + (W - LEFT) * n / (texts.length - 1), y: H - 6,
    "text-anchor": n === 0 ? "start" : n === texts.length - 1 ? "end" : "middle" }, value)));
}

// Square roots keep a few true positives visible next to many false positives.
function histogram(id, data, label) {
  const sums = data.true_positives.map((n, index) => n + data.false_positives[index]);
  const largest = Math.max(...sums, 1);
  const [svg, y] = frame(largest, powers(largest), label, Math.sqrt);
  const wide = (W - LEFT) / sums.length;
  sums.forEach((n, index) => {
    const x = LEFT + index * wide + 1, right = data.true_positives[index];
    const title = `${fraction(data.edges[index], 2)} – ${fraction(data.edges[index + 1], 2)}: ${integer(n)}, ${integer(right)} TP`;
    const column = (kind, value) => draw("rect", { class: kind, x, width: wide - 2, y: y(value), height: y(0) - y(value) },
      draw("title", {}, title));
    svg.append(column("column-two", n), column("column", right));
  });
  const [low, high] = [data.edges[0], data.edges.at(-1)];
  below(svg, [low, (low + high) / 2, high].map((v) => fraction(v, 2)));
  $(id).replaceChildren(svg, key(["column-two", "all"], ["column", "TP"]), make("p", { class: "description" }, "Square-root scale."));
}

const key = (...entries) => make("div", { class: "legend" }, ...entries.map(([kind, text]) => make("span", {},
  swatch(kind === "confidence" ? draw("line", { class: kind, x1: 0, x2: 30, y1: 5, y2: 5 })
    : draw("rect", { class: kind, width: 30, height: 10, rx: 2 })), text)));

function updateCalibration() {
  const data = analysis.calibration, k = chosenClass();
  if (data.refused) {
    $("calibration-text").textContent = `Not computed: ${data.refused}.`;
    $("calibration-tiles").hidden = true;
    $("reliability").parentNode.hidden = true;
    $("calibration-table").closest("details").hidden = true;
    return;
  }
  const here = k < 0 ? data.overall : data.by_class[k];
  const localized = k < 0 ? data.localized : data.localized_by_class[k];
  $("calibration-text").textContent = "In a calibrated detector, 80 % of the detections with scores near 0.8 are " +
    `true positives. ${k < 0 ? "All classes" : state.class}.`;
  tiles("calibration-tiles", [["ECE", fraction(here.expected)], ["MCE", fraction(here.largest)], ["LaECE", fraction(localized)]]);
  const [svg, y] = frame(1, [0, 0.25, 0.5, 0.75, 1], "Accuracy in ten score bins; the table below has the same values");
  const x = (v) => LEFT + v * (W - LEFT);
  data.edges.slice(0, -1).forEach((low, n) => {
    if (!here.count[n]) return;
    const high = data.edges[n + 1];
    svg.append(draw("rect", { class: "column", x: x(low) + 2, width: x(high) - x(low) - 4, y: y(here.accuracy[n]), height: y(0) - y(here.accuracy[n]) }));
    svg.append(draw("line", { class: "confidence", x1: x(low) + 2, x2: x(high) - 2, y1: y(here.confidence[n]), y2: y(here.confidence[n]) }));
  });
  svg.append(draw("line", { class: "ideal", x1: x(0), y1: y(0), x2: x(1), y2: y(1) }));
  below(svg, ["0", "0.5", "1"]);
  $("reliability").replaceChildren(svg, key(["column", "accuracy"], ["confidence", "confidence"]));
  $("calibration-table").replaceChildren(
    head(heading("score bin"), heading("detections", "count"), heading("confidence", "fraction"), heading("accuracy", "fraction"), heading("gap", "fraction")),
    make("tbody", {}, ...here.count.map((n, index) => make("tr", {},
      make("th", { scope: "row" }, `${fraction(data.edges[index], 1)} – ${fraction(data.edges[index + 1], 1)}`),
      cell(integer(n), "count"), cell(fraction(here.confidence[index]), "fraction"), cell(fraction(here.accuracy[index]), "fraction"),
      cell(n ? signed(here.confidence[index] - here.accuracy[index]) : NOTHING, "fraction")))));
}

// --- breakdowns

const BREAKDOWNS = {
  size: ["By size", "square root of the area in pixels"], aspect_ratio: ["By aspect ratio", "width / height"],
  crowding: ["By crowding", "objects in the image"], position: ["By position", "recall by image region (3 × 3)"],
};

function buildBreakdowns() {
  const breakdowns = analysis.breakdowns;
  if ($("breakdowns-score")) $("breakdowns-score").textContent = fraction(breakdowns.score);
  $("breakdowns-body").replaceChildren(...breakdowns.parts.map((part) => {
    const [title, description] = BREAKDOWNS[part.name];
    return make("div", {}, make("h3", {}, title, make("span", { class: "description" }, description)),
      part.name === "position" ? regionTable(part) : breakdownTable(part, title));
  }));
}

// "16-32" holds 16, but not 32: of whole numbers that is 16 to 31.
function groupName(part, name) {
  const [low, high] = name.split("-");
  if (!high) return `${low} or more`;
  if (part.name !== "crowding") return `${low} – ${high}`;
  return Number(high) - 1 === Number(low) ? low : `${low} – ${high - 1}`;
}

function breakdownTable(part, title) {
  const rows = part.groups.map((name, n) => {
    const recall = ratio(part.matched[n], part.truths[n]), precision = ratio(part.true_positives[n], part.detections[n]);
    return make("tr", {}, make("th", { scope: "row" }, groupName(part, name)), cell(integer(part.truths[n])),
      make("td", {}, meter(recall), fraction(recall, 3)), make("td", {}, meter(precision), fraction(precision, 3)));
  });
  return make("div", { class: "scroll short", tabindex: "0", role: "region", "aria-label": title },
    make("table", {}, head(heading("group"), heading("GT"), heading("recall"), heading("precision")), make("tbody", {}, ...rows)));
}

function regionTable(part) {
  const rows = [0, 1, 2].map((row) => make("tr", {}, ...[0, 1, 2].map((column) => {
    const n = 3 * row + column, recall = ratio(part.matched[n], part.truths[n]);
    const node = make("td", {}, make("strong", {}, fraction(recall, 3)), make("small", {}, `${integer(part.truths[n])} ${part.truths[n] === 1 ? "object" : "objects"}`));
    node.title = part.groups[n];
    paint(node, ((recall || 0) / 2) ** 2);  // the paler half of the ramp: all figures in one color
    return node;
  })));
  return make("table", { class: "regions", "aria-label": "Recall by image region (3 × 3)" }, make("tbody", {}, ...rows));
}

// --- images

// Okabe and Ito's colors; dashes distinguish them as well.
const INK = {
  "true-positive": ["#009e73", ""], "localization": ["#e69f00", "9 4"], "classification": ["#cc79a7", "3 3"],
  "both": ["#0072b2", "14 5"], "duplicate": ["#56b4e9", "12 3 2 3"], "background": ["#d55e00", "6 4"],
  "missed": ["#f0e442", "1.5 4"], "matched": ["#ffffff", ""], "other": ["#999999", "2 6"],
};
const SHOWN = Object.keys(INK);
const RESULT_LABELS = { ...LABELS, matched: "GT matched", missed: "GT missed", other: "Not counted" };
const resultGroup = (result) => result === "near-miss" ? "missed" : INK[result] ? result : "other";
const HIDDEN_AT_FIRST = ["matched", "other"];
// The state holds the differences from the default.
const isHidden = (result) => state.hide.split(".").includes(result) !== HIDDEN_AT_FIRST.includes(result);

function toggle(result) {
  const flipped = new Set(state.hide.split(".").filter(Boolean));
  if (!flipped.delete(result)) flipped.add(result);
  set({ hide: SHOWN.filter((name) => flipped.has(name)).join(".") });
}

const LISTS = {
  worst: ["Worst images", "Most false positives and false negatives at the best F1."],
  changed: ["Regressions", "More errors than the earlier detector, each at its best F1."],
  errors: ["Confident errors", "False positives by descending score, with examples of each class, type and confusion."],
  label_errors: ["Possible label errors", "Confident detections that disagree with the annotations."],
};
const REASONS = {
  "missing_annotation": "missing annotation", "wrong_label": "annotated as another class",
  "never_detected": "never detected",
};
const gallery = analysis ? model.gallery : { images: [], entries: [] };
const FIRST = 12;
let maxTiles = FIRST;

const labelsOf = (image, predicate) => new Set([
  ...image.detections.filter((d) => predicate(resultGroup(d[6]))).map((d) => d[0]),
  ...image.truths.filter((t) => predicate(resultGroup(t[5]))).map((t) => t[0]),
]);

function entriesShown() {
  const k = chosenClass();
  const bad = (result) => !["true-positive", "matched", "other"].includes(result);
  const list = gallery.entries.map((entry, index) => ({ ...entry, index })).filter((entry) => {
    if (entry.list !== state.list) return false;
    if (entry.list === "worst" || entry.list === "changed") {
      const image = gallery.images[entry.image];
      const matters = (result) => state.type ? result === state.type : bad(result);
      return (k < 0 && !state.type) || (k < 0 ? labelsOf(image, matters).size > 0 : labelsOf(image, matters).has(k));
    }
    if (k >= 0 && entry.label !== k && entry.truth_label !== k) return false;
    if (entry.list === "label_errors") return !state.type || state.type === { "missing_annotation": "background", "wrong_label": "classification", "never_detected": "missed" }[entry.reason];
    if (state.pair) {
      const other = entry.kind === "background" ? K : entry.truth_label ?? K;
      return pairKey(other, entry.label) === state.pair || (state.pair === pairKey(K, entry.label) && entry.kind !== "classification");
    }
    return !state.type || entry.kind === state.type;
  });
  if (state.list === "errors") list.sort((a, b) => b.score - a.score);
  return list;
}

function describe(entry) {
  if (entry.list === "worst") return `${integer(entry.false_positives)} FP, ${integer(entry.false_negatives)} FN`;
  if (entry.list === "changed") return `${integer(entry.before)} errors before, ${integer(entry.now)} now`;
  if (entry.list === "label_errors") {
    const what = entry.reason === "wrong_label" ? `annotated as ${classes[entry.truth_label]}` : REASONS[entry.reason];
    return entry.detection >= 0 ? `${classes[entry.label]} ${fraction(entry.weight, 2)}: ${what}` : `${classes[entry.label]}: ${what}`;
  }
  const other = entry.truth_label === null || entry.truth_label === entry.label ? "" : ` with ${classes[entry.truth_label]}`;
  return `${classes[entry.label]} ${fraction(entry.score, 2)}: ${LABELS[entry.kind].toLowerCase()}${other}`;
}

function extent(image) {
  if (image.size) return image.size;
  let [width, height] = [1, 1];
  for (const [x, y, w, h] of [...image.detections.map((d) => d.slice(2, 6)), ...image.truths.map((t) => t.slice(1, 5))]) {
    width = Math.max(width, x + w); height = Math.max(height, y + h);
  }
  return [width, height];
}

// A box or a shape; shapes are slightly filled.
function outline(x, y, w, h, shape, result, thick) {
  const [ink, dash] = INK[result];
  const [kind, geometry] = shape ? ["path", { d: shape }] : ["rect", { x, y, width: w, height: h }];
  const common = { ...geometry, fill: "none", "vector-effect": "non-scaling-stroke" };
  return [
    draw(kind, { ...common, stroke: "#000", "stroke-opacity": 0.5, "stroke-width": thick + 1.2 }),
    draw(kind, { ...common, ...(shape && { fill: ink, "fill-opacity": 0.15 }), stroke: ink, "stroke-width": thick, "stroke-dasharray": dash,
      "stroke-linecap": result === "missed" ? "round" : "butt", "data-result": result }),
  ];
}

// The class and score of a box, in its upper corner or outside it; of an object, in the lower one.
function tag(words, x, y, size) {
  const node = draw("text", { class: "tag", x: x + size / 4, y }, words);
  node.style.fontSize = `${size}px`;
  return node;
}

function picture(entry, focused) {
  const image = gallery.images[entry.image], [width, height] = extent(image), score = scoreNow() ?? -Infinity;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  if (image.picture) svg.append(draw("image", { href: image.picture, width, height, preserveAspectRatio: "none" }));
  else svg.append(draw("rect", { class: "blank", width, height }));
  const focal = entry.detection >= 0 || entry.truth >= 0;
  const only = focused && focal, thick = focused ? 1.6 : 2.4;
  const tags = [], size = Math.max(width, height) / 45;
  image.truths.forEach(([label, x, y, w, h, raw], index) => {
    const result = resultGroup(raw), here = index === entry.truth;
    if (only ? !here : !here && isHidden(result)) return;
    svg.append(...outline(x, y, w, h, image.outlines?.truths[index], result, thick));
    if (!focused) tags.push(tag(classes[label], x, y + h - size / 2, size));
  });
  image.detections.forEach(([label, s, x, y, w, h, raw], index) => {
    const result = resultGroup(raw), here = index === entry.detection;
    if (only ? !here : !here && (s < score || isHidden(result))) return;
    svg.append(...outline(x, y, w, h, image.outlines?.detections[index], result, here ? 1.4 * thick : thick));
    if (!focused) tags.push(tag(`${classes[label]} ${fraction(s, 2)}`, x, y > 1.3 * size ? y - size / 3 : y + 1.1 * size, size));
  });
  svg.append(...tags);
  return svg;
}

function resultButtons(id) {
  $(id).replaceChildren(...SHOWN.map((result) => make("button", {
    type: "button", "aria-pressed": String(!isHidden(result)), "data-result": result, click: () => toggle(result),
  }, swatch(draw("line", { x1: 1, x2: 29, y1: 5, y2: 5, stroke: "#000", "stroke-opacity": 0.3, "stroke-width": 5 }),
    draw("line", { x1: 1, x2: 29, y1: 5, y2: 5, stroke: INK[result][0], "stroke-width": 3.5, "stroke-dasharray": INK[result][1] })),
  RESULT_LABELS[result])));
}

function keepFocus(id, build) {
  const active = document.activeElement;
  const index = $(id).contains(active) ? [...$(id).querySelectorAll("button")].indexOf(active) : -1;
  build();
  if (index >= 0) $(id).querySelectorAll("button")[index]?.focus();
}

function updateGallery(changed) {
  if (!changed || ["class", "type", "pair", "list"].some((key) => changed.has(key))) maxTiles = FIRST;
  const known = Object.keys(LISTS).filter((name) => gallery.entries.some((entry) => entry.list === name));
  keepFocus("gallery-lists", () => $("gallery-lists").replaceChildren(...known.map((name) => make("button", {
    type: "button", "aria-pressed": String(state.list === name), click: () => set({ list: name, pair: "" }),
  }, LISTS[name][0]))));
  keepFocus("gallery-results", () => resultButtons("gallery-results"));
  const list = entriesShown(), shown = list.slice(0, maxTiles);
  const which = [state.class && `class ${state.class}`, state.type && LABELS[state.type].toLowerCase(), state.pair.replace("\u2192", " predicted as ")].filter(Boolean).join(", ");
  $("gallery-text").textContent = (LISTS[state.list] || LISTS.worst)[1] + (which
    ? ` ${list.length ? integer(list.length) : "None"} for ${which}.` : ` ${integer(list.length)} in total.`) +
    (!list.length ? " Use detap show for the boxes of any image." : "");
  keepFocus("gallery-tiles", () => $("gallery-tiles").replaceChildren(...shown.map((entry) => make("li", {},
    make("button", { type: "button", click: () => set({ image: String(entry.index) }) },
      make("span", { class: "stage" }, picture(entry, true)),
      make("strong", { title: gallery.images[entry.image].name }, gallery.images[entry.image].name),
      make("span", { class: "description", title: describe(entry) }, describe(entry)))))));
  $("gallery-more").hidden = shown.length === list.length;
  $("gallery-more").textContent = `Show ${Math.min(FIRST, list.length - shown.length)} more`;
}

let opener = null;

function updateViewer() {
  const viewer = $("viewer"), entry = gallery.entries[Number(state.image)];
  if (state.image === "" || !entry) {
    if (viewer.open) viewer.close();
    return;
  }
  const image = gallery.images[entry.image], score = scoreNow() ?? -Infinity;
  const list = entriesShown(), index = list.findIndex((other) => other.index === Number(state.image));
  $("viewer-title").textContent = image.name;
  $("viewer-text").textContent = describe(entry) + (index < 0 ? "" : ` · ${index + 1} of ${list.length}`) +
    (image.omitted ? ` · ${integer(image.omitted)} detections with lower scores are not drawn` : "");
  $("viewer-picture").replaceChildren(picture(entry, false));
  keepFocus("viewer-results", () => resultButtons("viewer-results"));
  const truthName = (n) => n < 0 ? NOTHING : `${classes[image.truths[n][0]]} ${n + 1}`;
  const rows = [
    ...image.truths.map(([label, , , , , result, by], n) => ({ focal: n === entry.truth, group: resultGroup(result),
      cells: [`GT ${n + 1}`, classes[label], NOTHING, LABELS[result], by < 0 ? NOTHING : `detection ${by + 1}`, NOTHING] })),
    ...image.detections.map(([label, s, , , , , result, truth, overlap], n) => ({ focal: n === entry.detection, score: s, group: resultGroup(result),
      cells: [`detection ${n + 1}`, classes[label], fraction(s), LABELS[result], truthName(truth), truth < 0 ? NOTHING : fraction(overlap, 3)] })),
  ].filter((row) => row.focal || (!isHidden(row.group) && (row.score === undefined || row.score >= score)));
  $("viewer-table").replaceChildren(
    head(heading(image.outlines ? "shape" : "box"), heading("class"), heading("score", "fraction"), heading("result"), heading("matched or nearest"), heading("IoU", "fraction")),
    make("tbody", {}, ...rows.map((row) => make("tr", { class: row.focal ? "focal" : null },
      make("th", { scope: "row" }, row.cells[0]), ...row.cells.slice(1).map((text, n) => cell(text, n === 1 || n === 4 ? "fraction" : null))))));
  $("previous").disabled = index <= 0;
  $("next").disabled = index < 0 || index >= list.length - 1;
  if (!viewer.open) {
    opener = document.activeElement;
    viewer.showModal();
    $("viewer-title").focus();
  }
}

function step(by) {
  const list = entriesShown(), index = list.findIndex((entry) => entry.index === Number(state.image));
  const next = list[index + by];
  if (next) set({ image: String(next.index) });
}

function wireViewer() {
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("close").addEventListener("click", () => $("viewer").close());
  $("viewer").addEventListener("close", () => { set({ image: "" }); opener?.focus?.(); });
  $("viewer").addEventListener("click", (event) => { if (event.target === $("viewer")) $("viewer").close(); });
  $("viewer").addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const by = { ArrowRight: 1, n: 1, j: 1, ArrowLeft: -1, p: -1, k: -1 }[event.key];
    if (by) { event.preventDefault(); step(by); }
  });
}

// --- navigation

function wireSections() {
  const links = [...document.querySelectorAll("nav a")];
  const go = (id) => $(id)?.scrollIntoView();
  for (const link of links) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const id = link.getAttribute("href").slice(1);
      set({ at: id === "summary" ? "" : id });
      go(id);
    });
  }
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links) {
        if (link.getAttribute("href") === `#${entry.target.id}`) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const link of links) { const target = $(link.getAttribute("href").slice(1)); if (target) seen.observe(target); }
  if (state.at) go(state.at);
}

function redrawCharts() {
  if (!analysis) return;
  buildOperating();
  buildCurves();
}

function start() {
  readFragment();
  $("filter").value = state.filter;
  $("filter").addEventListener("input", () => set({ filter: $("filter").value }));
  $("csv").addEventListener("click", downloadCsv);
  section(["class", "score", "sort", "filter"], updateClasses);
  if (model.baseline) {
    section(["class"], updateChange);
    $("change-more").addEventListener("click", () => { allChanges = true; updateChange(); });
  }
  if (analysis) {
    fillBar();
    section(["class", "type", "score"], updateBar);
    section(["class", "type", "score"], updateErrors);
    section(["class", "score"], updateTiles);
    section(["class", "score"], (changed) => {
      const plot = charts["operating-chart"];
      if (!plot) return;
      if (!changed || changed.has("class")) plot.setData(operatingData()); else plot.redraw(false);
    });
    section(["class"], () => { buildCurves(); updateCurveTable(); });
    section(["score"], (changed) => { if (changed && !changed.has("class") && state.class) charts["curves-chart"]?.redraw(false); });
    section(["class", "score"], updateConfusion, true);
    section(["class"], updateCalibration);
    section(["class", "type", "score", "pair", "list", "hide"], updateGallery, true);
    section(["class", "type", "score", "pair", "list", "hide", "image"], updateViewer, true);
    $("confusion-more").addEventListener("click", () => { matrixAsked = true; updateConfusion(); });
    $("confusion-table").addEventListener("keydown", matrixKeys);
    $("confusion-table").addEventListener("click", (event) => matrixCell(event.target.closest("td[data-cell]")));
    $("gallery-more").addEventListener("click", () => { maxTiles += FIRST; updateGallery(new Set()); });
    histogram("scores", analysis.histograms.score, "Detections by score, true and false positives");
    histogram("overlaps", analysis.histograms.iou, "Detections by IoU, true and false positives");
    buildBreakdowns();
    wireViewer();
    buildOperating();
  }
  show(null);
  wireSections();
  dark.addEventListener("change", () => { redrawCharts(); if (analysis) { updateConfusion(); buildBreakdowns(); } });
  new ResizeObserver(() => {
    for (const [id, plot] of Object.entries(charts)) {
      const { clientWidth, clientHeight } = $(id);
      if (clientWidth && plot.width !== clientWidth) plot.setSize({ width: clientWidth, height: clientHeight });
    }
  }).observe($("main"));
  addEventListener("hashchange", () => { if (readFragment()) show(null); });
}

start();
})();
