// An image with its objects and detections.

// Okabe and Ito's colors; dashes distinguish them as well.
const INK = {
  "true-positive": ["#009e73", ""], "localization": ["#e69f00", "9 4"], "classification": ["#cc79a7", "3 3"],
  "both": ["#0072b2", "14 5"], "duplicate": ["#56b4e9", "12 3 2 3"], "background": ["#d55e00", "6 4"],
  "missed": ["#f0e442", "1.5 4"], "near-miss": ["#f0e442", "8 4 1.5 4"], "matched": ["#ffffff", ""], "other": ["#999999", "2 6"],
};
const SHOWN = Object.keys(INK);
const RESULT_LABELS = { ...LABELS, matched: "GT matched", missed: "FN, missed (TIDE)", "near-miss": "FN, near miss", other: "Not counted" };
const resultGroup = (result) => INK[result] ? result : "other";
const HIDDEN_AT_FIRST = ["matched", "other"];
// The state holds the differences from the default.
const isHidden = (result) => state.hide.split(".").includes(result) !== HIDDEN_AT_FIRST.includes(result);

function resultButtons(id) {
  $(id).replaceChildren(...SHOWN.map((result) => make("button", {
    type: "button", "aria-pressed": String(!isHidden(result)), "data-result": result, click: () => flip("hide", result, "."),
  }, swatch(lineMark("rgb(0 0 0 / .3)", 5), lineMark(INK[result][0], 3.5, INK[result][1])), RESULT_LABELS[result])));
}

// A box or a shape; shapes are slightly filled.
function outline([x, y, width, height], shape, result, thick) {
  const [ink, dash] = INK[result];
  const [kind, geometry] = shape ? ["path", { d: shape }] : ["rect", { x, y, width, height }];
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

// A tile shows what its caption counts; the viewer shows the whole image.
function isDrawn(entry, { row, label, result }, isTruth, isTile) {
  if (row === (isTruth ? entry.truth : entry.detection)) return true;
  if (isTile && (entry.detection >= 0 || entry.truth >= 0)) return false;
  if (isHidden(resultGroup(result))) return false;
  return !isTile || ((state.class === "" || classes[label] === state.class) && (state.type === "" || result === state.type));
}

// Of a detector, with tags of a part of the longer side.
function picture(entry, isTile, detections = images.detector, part = 45) {
  const { image } = entry, [width, height] = extentOf(image), step = stepNow();
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  if (pictures[image]) svg.append(draw("image", { href: pictures[image][0], width, height, preserveAspectRatio: "none" }));
  else svg.append(draw("rect", { class: "blank", width, height }));
  const thick = isTile ? 1.6 : 2.4, tags = [], size = Math.max(width, height) / part;
  for (const object of truthsAt(image, step, detections)) {
    if (!isDrawn(entry, object, true, isTile)) continue;
    const { row, label, box, result } = object, [x, y, , h] = box;
    svg.append(...outline(box, shapeOf(images.truths, row), resultGroup(result), thick));
    if (!isTile) tags.push(tag(classes[label], x, y + h - size / 2, size));
  }
  for (const object of detectionsAt(image, step, detections)) {
    if (!isDrawn(entry, object, false, isTile)) continue;
    const { row, label, score, box, result } = object, [x, y] = box;
    svg.append(...outline(box, shapeOf(detections, row), resultGroup(result), row === entry.detection ? 1.4 * thick : thick));
    if (!isTile) tags.push(tag(classAndScore(label, score), x, y > 1.3 * size ? y - size / 3 : y + 1.1 * size, size));
  }
  svg.append(...tags);
  return svg;
}
