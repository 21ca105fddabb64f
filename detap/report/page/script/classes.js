// The class table.

const AT_SCORE = !hasScores ? [] : [
  ["precision_at", "precision", "fraction", "precision"], ["recall_at", "recall", "fraction", "recall"], ["f1_at", "F1", "fraction", "f1"],
  ["true_positives_at", "true positives", "count", "right"], ["false_positives_at", "false positives", "count", "wrong"],
  ["false_negatives_at", "false negatives", "count", "lost"],
].map(([key, heading, kind, name]) => (
  { key, title: `${heading} at score`, kind, live: true, priority: 0, of: (k) => point(k, stepNow())[name] }));
// Counts of all detections: hidden at first, since the counts at the score replace them.
const AT_ALL = hasScores ? ["true_positives", "false_positives", "duplicates"] : [];
const BASE = model.table.columns.map(({ key, heading, kind, priority }, index) => ({
  key, kind, title: AT_ALL.includes(key) ? `${heading}, all scores` : heading,
  priority: AT_ALL.includes(key) ? Infinity : priority, of: (k) => model.table.rows[k][index],
}));
const firstCount = BASE.findIndex((column) => column.kind === "count");
const COLUMNS = [...BASE.slice(0, firstCount), ...AT_SCORE, ...BASE.slice(firstCount)];
// So many fit a window of 1,400 pixels.
const MOST_COLUMNS = 13;
const shownAtFirst = new Set(COLUMNS.filter((column) => column.priority < Infinity)
  .sort((a, b) => a.priority - b.priority).slice(0, MOST_COLUMNS));
// The state holds the differences from the default.
const isShown = (column) => state.columns.split(" ").includes(column.key) !== shownAtFirst.has(column);
const shown = (column, value) => column.kind === "fraction" ? fraction(value) : integer(value);

function sortedClasses() {
  const text = state.filter.toLowerCase();
  const list = classes.map((_, k) => k).filter((k) => classes[k].toLowerCase().includes(text));
  const sign = state.sort.startsWith("-") ? -1 : 1, key = state.sort.replace(/^-/, "");
  if (key === "name") return list.sort((a, b) => sign * classes[a].localeCompare(classes[b], "en"));
  const column = COLUMNS.find((entry) => entry.key === key);
  if (!column) return list;
  const values = classes.map((_, k) => column.of(k));
  const known = (k) => values[k] !== null && values[k] !== undefined;
  return [...list.filter(known).sort((a, b) => sign * (values[a] - values[b])), ...list.filter((k) => !known(k))];
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

function fillColumns() {
  $("columns-list").append(...COLUMNS.map((column) => {
    const box = make("input", { type: "checkbox", value: column.key });
    box.addEventListener("change", () => flip("columns", column.key, " "));
    return make("label", {}, box, column.title);
  }));
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
  const columns = COLUMNS.filter(isShown);
  for (const box of $("columns-list").querySelectorAll("input")) box.checked = columns.some((column) => column.key === box.value);
  liveCells = [];
  order = sortedClasses();
  const cellsOf = (k) => columns.map((column) => {  // -1: all
    const value = k < 0 && !column.live ? model.table.totals[BASE.indexOf(column)] : column.of(k);
    const node = cell(shown(column, value), column === AT_SCORE[0] ? "first" : null);
    if (column.live) liveCells.push([node, column, k]);
    return node;
  });
  const rows = order.map((k) => make("tr", { class: classes[k] === state.class ? "chosen" : null },
    make("th", { scope: "row" }, classButton(k)), ...cellsOf(k)));
  keepFocus("classes-table", () => $("classes-table").replaceChildren(
    head(sortHeading("name", "class", "name"), ...columns.map((column) =>
      sortHeading(column.key, column.title, column === AT_SCORE[0] ? "first" : null))),
    make("tbody", {}, ...rows),
    make("tfoot", {}, make("tr", {}, make("th", { scope: "row" }, model.table.totalsName), ...cellsOf(-1)))));
  if ($("filter").value !== state.filter) $("filter").value = state.filter;
  $("classes-count").textContent = order.length === K ? `${integer(K)} ${K === 1 ? "class" : "classes"}`
    : `${integer(order.length)} of ${integer(K)} classes`;
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
