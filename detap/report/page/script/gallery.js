// Lists of images.

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
