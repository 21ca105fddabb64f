// Precision over recall.

const curved = !hasScores ? [] : classes.map((_, k) => k).filter((k) => analysis.curves.by_class[k]);
const curveOf = (curves, k) => k < 0 ? curves.mean : curves.by_class[k];
const curveName = (k) => k < 0 ? `mean of ${integer(curved.length)} ${curved.length === 1 ? "class" : "classes"}` : classes[k];
const BASELINE_INK = "#d55e00", BASELINE_DASH = [8, 4];

// Beyond this the curves of classes hide each other: only the mean and the chosen class are drawn.
const MOST_CURVES = 100;
const fewCurves = curved.length <= MOST_CURVES;

// Thin curves of classes, then the chosen one, or the mean, and that of the baseline.
function curveLines(k) {
  const before = analysis.curves_before;
  const others = fewCurves ? curved.filter((c) => c !== k) : k < 0 ? [] : [-1];
  const lines = others.map((c) => ({
    k: c, label: curveName(c), values: curveOf(analysis.curves, c), stroke: color("--strong"), width: 1.25,
    alpha: !fewCurves ? 1 : k < 0 && curved.length <= 40 ? 0.55 : 0.25,
  }));
  const chosen = curveOf(analysis.curves, k);
  if (chosen) lines.push({ k, label: curveName(k), values: chosen, stroke: color("--accent"), width: 3 });
  if (chosen && before) {
    lines.push({ k, label: `${curveName(k)}, baseline`, values: curveOf(before, k), stroke: shade(BASELINE_INK), width: 2.5, dash: BASELINE_DASH });
  }
  return lines;
}

function buildCurves() {
  if (!curved.length) return;
  const x = Array.from({ length: 101 }, (_, n) => n / 100);
  const lines = curveLines(chosenClass());
  let near = -1;
  const options = {
    scales: { x: { time: false, range: [0, 1] }, y: { range: [0, 1.02] } },
    axes: axes(),
    focus: { alpha: 0.18 },
    cursor: { focus: { prox: 24 }, points: { show: false }, drag: { x: false, y: false } },
    series: [{}, ...lines.map(({ label, stroke, width, alpha = 1, dash }) => ({ label, stroke, width, alpha, dash, points: { show: false } }))],
    hooks: {
      draw: [markPoint],
      setSeries: [(plot, index) => { near = index ? lines[index - 1].k : -1; describeCurve(near); }],
    },
  };
  const plot = chart("curves-chart", options, [x, ...lines.map(({ values }) => values.map((v) => v / 1e4))]);
  plot.over.addEventListener("click", () => {
    if (near >= 0) set({ class: state.class === classes[near] ? "" : classes[near], pair: "" });
  });
  describeCurve(-1);
  fillCurveLegend(lines);
  $("curves-caption").textContent = fewCurves ? "Precision over recall. Click the curve of a class to select it."
    : "Precision over recall. Select a class to draw its curve.";
}

function fillCurveLegend(lines) {
  const k = chosenClass(), line = ({ stroke, width, dash = [] }) => lineMark(stroke, width, dash.join(" "));
  const thin = lines.find((entry) => entry.width < 2), entries = lines.filter((entry) => entry.width >= 2).map((entry) => [entry.label, line(entry)]);
  if (thin) entries.push([!fewCurves ? thin.label : k < 0 ? "one class" : "another class", line(thin)]);
  if (k >= 0) entries.push(["at the score threshold", draw("circle", { cx: 15, cy: 5, r: 5, fill: color("--accent") })]);
  legend("curves-legend", ...entries);
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
  const k = near >= 0 ? near : chosenClass(), name = curveName(k);
  const before = analysis.curves_before ? `, baseline AP ${fraction(apBefore(k))}` : "";
  $("curves-text").textContent = `${k < 0 ? name.replace("mean", "Mean") : name}: AP ${fraction(apOf(k))}${before}.`;
}

const apOf = (k) => k < 0 ? analysis.average_precision : analysis.average_precision_by_class[k];
const apBefore = (k) => k < 0 ? analysis.average_precision_before : analysis.average_precision_before_by_class[k];

function updateCurveTable() {
  const k = chosenClass(), before = analysis.curves_before;
  const at = Array.from({ length: 11 }, (_, n) => 10 * n);
  const row = (name, ap, values) => values ? [make("tr", {}, make("th", { scope: "row" }, name), cell(fraction(ap), "fraction"),
    ...at.map((n) => cell(fraction(values[n] / 1e4, 3), "fraction")))] : [];
  const rows = (c) => [...row(curveName(c), apOf(c), curveOf(analysis.curves, c)),
    ...(before ? row(`${curveName(c)}, baseline`, apBefore(c), curveOf(before, c)) : [])];
  $("curves-table").replaceChildren(
    head(heading("class"), heading("AP", "fraction"), ...at.map((n) => heading(`at ${(n / 100).toFixed(1)}`, "fraction"))),
    make("tbody", {}, ...(k < 0 ? [-1, ...curved] : [k]).flatMap(rows)));
}
