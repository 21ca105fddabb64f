// The operating point.

const LINES = [["Precision", "#0072b2", []], ["Recall", "#d55e00", [8, 4]], ["F1", "#009e73", [2, 3]]];

function updateTiles() {
  const k = chosenClass(), step = stepNow(), at = point(k, step);
  tiles("operating-tiles", [
    ["Score threshold", scoreText(scoreNow())], ["F1", fraction(at.f1)], ["Precision", fraction(at.precision)],
    ["Recall", fraction(at.recall)], ["FP per image", fraction(at.perImage, 3)],
    ["True positives", integer(at.right)], ["False positives", integer(at.wrong)],
    ["False negatives", integer(at.lost)],
  ]);
  const best = k < 0 ? op.best : op.best_by_class[k];
  const where = best === null ? "no detections" :
    `best F1 ${fraction(point(k, best).f1)} at ${scoreText(op.scores[best])}`;
  $("operating-scope").textContent = `${k < 0 ? "all classes pooled" : state.class}, ${where}`;
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
  legend("operating-legend", ...LINES.map(([name, ink, dash]) => [name, lineMark(shade(ink), 2.5, dash.join(" "))]),
    ["Score threshold", draw("line", { x1: 15, x2: 15, y1: 0, y2: 10, stroke: color("--text"), "stroke-width": 1.5 })]);
}

function operatingData() {
  const k = chosenClass(), points = Array.from({ length: steps }, (_, n) => point(k, steps - 1 - n));
  return [[...op.scores].reverse(), ...["precision", "recall", "f1"].map((name) => points.map((at) => at[name]))];
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
