// The confusion matrix.

const MORE_CLASSES = 20;
let matrixSize = MORE_CLASSES;
const BACKGROUND = "background";
const className = (k) => k === K ? BACKGROUND : classes[k];

// False positives that could match a ground truth of another class, by descending score: see
// Misclassifiable in confusion.py. The label K means a class that is not selected.
let possible = null;  // until they are unpacked

async function unpackConfusion() {
  possible = await unpacked(analysis.confusion);
  possible.start = sums(possible.count);
  updateConfusion();
  $("confusion").removeAttribute("aria-busy");
}

// Cells [row, column, count] of the false positives that match ground truths of other classes.
function misclassifiedAt(step) {
  const { label, start, candidate, truth_label, truth_step } = possible;
  const taken = new Uint8Array(truth_label.length), cells = new Map();
  for (let n = 0; n < label.length && possible.step[n] <= step; n++) {
    for (let c = start[n]; c < start[n + 1]; c++) {
      const truth = candidate[c];
      if (taken[truth] || truth_step[truth] <= step) continue;
      taken[truth] = 1;
      const cell = truth_label[truth] * (K + 1) + label[n];
      cells.set(cell, (cells.get(cell) ?? 0) + 1);
      break;
    }
  }
  return Array.from(cells, ([cell, n]) => [Math.floor(cell / (K + 1)), cell % (K + 1), n]);
}

// All cells at a step: the last row is the background, the last column the ground truths without a detection.
function confusionAt(step) {
  const confused = misclassifiedAt(step), points = classes.map((_, k) => point(k, step));
  for (const [row, column, n] of confused) { if (row < K) points[row].lost -= n; if (column < K) points[column].wrong -= n; }
  const cells = confused.filter(([row, column]) => row < K && column < K);
  points.forEach(({ right, lost, wrong }, k) => cells.push([k, k, right], [k, K, lost], [K, k, wrong]));
  return cells.filter(([, , n]) => n);
}

const pairKey = (row, column) => `${className(row)}\u2192${className(column)}`;

function openPair(row, column) {
  set({ pair: pairKey(row, column), list: "errors", class: "", type: "" });
  $("gallery").scrollIntoView();
  $("gallery-lists").querySelector("[aria-pressed=true]")?.focus({ preventScroll: true });
}

function updateConfusion() {
  if (!possible) return;
  const step = stepNow(), k = chosenClass();
  const cells = confusionAt(step), totals = new Array(K + 1).fill(0);
  $("confusion-text").textContent = steps && hasScores ? `Score >= ${scoreText(scoreNow())}.` : "";
  for (const [row, , n] of cells) totals[row] += n;
  const wrong = cells.filter(([row, column]) => row !== column && row < K && column < K && (k < 0 || row === k || column === k));
  listConfusions(wrong, totals, k);
  const drawn = matrixClasses(wrong, k).slice(0, matrixSize), left = K - drawn.length;
  $("confusion-classes").textContent = !left ? "" : k < 0 ? `The ${drawn.length} of ${integer(K)} classes with the most confusions.`
    : `${state.class} and the classes most confused with it, ${drawn.length} of ${integer(K)}.`;
  $("confusion-more").hidden = !left;
  $("confusion-more").textContent = `Show ${Math.min(left, MORE_CLASSES)} more classes`;
  drawMatrix(cells, totals, drawn, k);
}

// All classes in their order if they fit, otherwise the most confused first.
function matrixClasses(wrong, k) {
  const all = Array.from(classes.keys());
  if (K <= MORE_CLASSES) return all;
  const confused = new Array(K).fill(0);
  for (const [row, column, n] of wrong) { confused[row] += n; confused[column] += n; }
  if (k >= 0) confused[k] = Infinity;
  return all.sort((a, b) => confused[b] - confused[a] || a - b);
}

function showMoreClasses() {
  matrixSize += MORE_CLASSES;
  updateConfusion();
  if ($("confusion-more").hidden) $("confusion-table").querySelector("td[data-cell]").focus();
}

function listConfusions(wrong, totals, k) {
  wrong.sort((a, b) => b[2] - a[2] || totals[a[0]] - totals[b[0]] || a[0] - b[0] || a[1] - b[1]);
  const top = wrong.slice(0, K > MORE_CLASSES ? 24 : 9);
  $("confusion-list").replaceChildren(
    make("h3", {}, top.length ? (k < 0 ? "Most confused classes" : `Most confused with ${state.class}`) : "No misclassifications."),
    make("ol", {}, ...top.map(([row, column, n]) => make("li", {},
      make("button", { type: "button", class: "link", click: () => openPair(row, column) },
        `${className(row)} predicted as ${className(column)}`),
      make("span", {}, `${integer(n)} (${fraction(100 * n / totals[row], 1)} %)`)))));
}

// The ground truths without a detection are the first column, which stays in view.
function drawMatrix(cells, totals, drawn, k) {
  const grid = new Map(cells.map(([row, column, n]) => [row * (K + 1) + column, n]));
  const predicted = (n) => n === K ? "background FN" : classes[n];
  const predictions = [K, ...drawn];
  const columns = predictions.map((n) => make("th", { scope: "col", class: n === k ? "chosen" : null, title: predicted(n) }, make("span", {}, predicted(n))));
  const rows = [...drawn, K].map((row) => make("tr", {},
    make("th", { scope: "row", class: row === k ? "chosen" : null, title: className(row) }, make("span", {}, className(row))),
    ...predictions.map((column) => {
      const n = grid.get(row * (K + 1) + column);
      const node = make("td", { tabindex: "-1", "data-cell": `${row},${column}`, class: n ? "some" : null });
      if (n) {
        node.textContent = n > 9999 ? `${Math.round(n / 1000)}k` : n;
        node.title = `${className(row)} → ${predicted(column)}: ${integer(n)}`;
        paint(node, n / totals[row]);
      } else if (row !== K || column !== K) paint(node, 0);
      return node;
    })));
  const table = $("confusion-table");
  table.replaceChildren(head(make("td", {}), ...columns), make("tbody", {}, ...rows));
  table.querySelector("td[data-cell]").tabIndex = 0;
  legend("confusion-legend", ...[0, 0.01, 0.1, 0.5, 1].map((part) => [`${100 * part} %`, draw("rect", { width: 30, height: 10, rx: 2, fill: shadeOf(part) })]));
  $("confusion-legend").append("of the sum of the row");
}

// The matrix is one stop of the Tab key; arrows move in it, Enter opens the images of a cell.
function matrixKeys(event) {
  const node = event.target.closest("td[data-cell]");
  if (!node) return;
  const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  if (move) {
    const next = $("confusion-table").rows[node.parentNode.rowIndex + move[0]]?.cells[node.cellIndex + move[1]];
    if (next?.dataset.cell) { node.tabIndex = -1; next.tabIndex = 0; next.focus(); }
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
  else if (column === K) { set({ class: classes[row], type: "missed", list: "images", pair: "" }); $("gallery").scrollIntoView(); }
  else openPair(row, column);
}
