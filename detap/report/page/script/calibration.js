// Calibration and histograms.

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

function updateOverlaps() {
  const { edges, true_positives: right, false_positives: wrong } = analysis.histograms.iou;
  histogram("overlaps", { edges, true_positives: right.map(countNow), false_positives: wrong.map(countNow) },
    "Detections at or above the score threshold by IoU, true and false positives");
}

const key = (...entries) => make("div", { class: "legend" }, ...entries.map(([kind, text]) => make("span", {},
  swatch(["confidence", "ideal"].includes(kind) ? draw("line", { class: kind, x1: 0, x2: 30, y1: 5, y2: 5 })
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
  $("reliability").replaceChildren(svg, key(["column", "accuracy"], ["confidence", "confidence"], ["ideal", "calibrated"]));
  $("calibration-table").replaceChildren(
    head(heading("score bin"), heading("detections", "count"), heading("confidence", "fraction"), heading("accuracy", "fraction"), heading("gap", "fraction")),
    make("tbody", {}, ...here.count.map((n, index) => make("tr", {},
      make("th", { scope: "row" }, `${fraction(data.edges[index], 1)} – ${fraction(data.edges[index + 1], 1)}`),
      cell(integer(n), "count"), cell(fraction(here.confidence[index]), "fraction"), cell(fraction(here.accuracy[index]), "fraction"),
      cell(n ? signed(here.confidence[index] - here.accuracy[index]) : NOTHING, "fraction")))));
}
