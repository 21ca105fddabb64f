// Precision over recall.

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
