// Lists of images.

const LISTS = hasScores ? { images: "All images", errors: "Confident errors", label_errors: "Possible label errors" }
  : { images: "All images", errors: "False positives" };
const ORDERS = {
  errors: "Most errors", wrong: "Most false positives", lost: "Most false negatives",
  worse: "Most errors more than before", better: "Most errors fewer than before", name: "File name",
};
const FIRST = 12, MOST_OF_A_REASON = 24;
let maxTiles = FIRST;

// The key of an entry in the URL: an image, and a detection or ground truth of it.
function keyOf({ image, detection, truth }) {
  if (detection >= 0) return `${image}.d${detection - images.detector.start[image]}`;
  return truth >= 0 ? `${image}.t${truth - images.truths.start[image]}` : String(image);
}

function entryOf(key) {
  const [, number, kind, index] = /^(\d+)(?:\.([dt])(\d+))?$/.exec(key) || [];
  const image = Number(number), table = kind === "d" ? images.detector : images.truths;
  if (number === undefined || image >= images.count || (kind && Number(index) >= table.count[image])) return null;
  const row = kind ? table.start[image] + Number(index) : -1;
  return { image, detection: kind === "d" ? row : -1, truth: kind === "d" ? targetOf(row) : row };
}

// The ground truth that a localization, classification or duplicate error is attributed to.
const targetOf = (row) =>
  ["localization", "classification", "duplicate"].includes(images.results[images.detector.result[row]]) ? images.detector.truth[row] : -1;

function searchFilter() {
  if (!state.find) return () => true;
  const text = state.find.toLowerCase();
  const matches = images.names.map((name, n) => name.toLowerCase().includes(text) || Boolean(images.files[n]?.toLowerCase().includes(text)));
  return (image) => matches[image];
}

// Images, sorted.
function listImages() {
  const k = chosenClass(), step = stepNow(), isFound = searchFilter();
  const now = tally(images.detector, step, k, state.type);
  const before = images.baseline && tally(images.baseline, step, k, state.type);
  const errors = ({ wrong, lost }, n) => wrong[n] + lost[n];
  const of = {
    errors: (n) => errors(now, n), wrong: (n) => now.wrong[n], lost: (n) => now.lost[n],
    worse: (n) => before ? errors(now, n) - errors(before, n) : 0, better: (n) => before ? errors(before, n) - errors(now, n) : 0,
  }[state.order || "errors"];
  const present = new Uint8Array(images.count);
  if (k >= 0 && !state.type) {
    const { truths, detector } = images;
    for (let row = 0; row < truths.label.length; row++) if (truths.label[row] === k) present[truths.image[row]] = 1;
    for (let row = 0; row < detector.label.length; row++) if (detector.label[row] === k && detector.step[row] <= step) present[detector.image[row]] = 1;
  } else for (let n = 0; n < images.count; n++) present[n] = !state.type || errors(now, n) > 0;
  const list = Array.from({ length: images.count }, (_, n) => n).filter((n) => present[n] && isFound(n));
  if (of) list.sort((a, b) => of(b) - of(a));
  else {
    const { compare } = new Intl.Collator("en", { numeric: true });
    list.sort((a, b) => compare(titleOf(a), titleOf(b)));
  }
  const counts = ({ wrong, lost }, n) => state.type ? `${integer(wrong[n] + lost[n])} ${inSentence(state.type)}`
    : `${integer(wrong[n])} FP, ${integer(lost[n])} FN`;
  return {
    rows: list, entry: (image) => ({ image, detection: -1, truth: -1 }), now,
    describe: ({ image }) => counts(now, image) + (before ? `; before ${counts(before, image)}` : ""),
  };
}

// False positives by descending score, at a step.
let byScore = null;

function falsePositivesAt(step) {
  const { detector } = images;
  if (!byScore) {
    byScore = Int32Array.from(detector.label.keys()).filter((row) => isError(detector.result[row]));
    byScore.sort((a, b) => detector.score[b] - detector.score[a] || a - b);
  }
  return byScore.filter((row) => detector.step[row] <= step);
}

function listErrors() {
  const { detector, truths } = images, k = chosenClass(), isFound = searchFilter();
  const only = ERROR_TYPES.indexOf(state.type) + 1;
  const rows = falsePositivesAt(stepNow()).filter((row) => {
    if (!isFound(detector.image[row]) || !isOfClass(k, row)) return false;
    if (!state.pair) return !state.type || detector.result[row] === only;
    const target = targetOf(row), label = detector.label[row];
    return pairKey(target < 0 ? K : truths.label[target], label) === state.pair ||
      (state.pair === pairKey(K, label) && images.results[detector.result[row]] !== "classification");
  });
  const entry = (row) => ({ image: detector.image[row], detection: row, truth: targetOf(row) });
  const describe = ({ detection, truth }) => {
    const { label, score, result } = detectionAt(detection, detector);
    const other = truth < 0 || truths.label[truth] === label ? "" : ` with ${classes[truths.label[truth]]}`;
    return `${classAndScore(label, score)}: ${inSentence(result)}${other}`;
  };
  return { rows, entry, describe };
}

// Whether a detection, or the ground truth that it is attributed to, is of a class (-1: any).
function isOfClass(k, row) {
  const target = targetOf(row);
  return k < 0 || images.detector.label[row] === k || (target >= 0 && images.truths.label[target] === k);
}

// The rules of detap/analysis/examples.py: errors at or above the median score of the true
// positives, and missed ground truths of classes with recall above 0.5.
function listLabelErrors() {
  const { detector, truths } = images, k = chosenClass(), step = stepNow(), isFound = searchFilter();
  const right = detector.score.filter((_, row) => detector.result[row] === 0 && detector.step[row] <= step).sort();
  const median = right.length ? (right[(right.length - 1) >> 1] + right[right.length >> 1]) / 2 : Infinity;
  const wrong = falsePositivesAt(step).filter((row) => detector.score[row] >= median && isOfClass(k, row) && isFound(detector.image[row]));
  const recall = classes.map((_, label) => point(label, step).recall), area = (row) => truths.w[row] * truths.h[row];
  const missed = Array.from(truths.label.keys()).filter((row) => (k < 0 || truths.label[row] === k) && recall[truths.label[row]] > 0.5 &&
    truthResult(detector, row, step) === MISSED && isFound(truths.image[row]));
  missed.sort((a, b) => recall[truths.label[b]] - recall[truths.label[a]] || area(b) - area(a) || a - b);
  const ofType = (type) => Array.from(wrong).filter((row) => images.results[detector.result[row]] === type)
    .map((row) => ({ image: detector.image[row], detection: row, truth: targetOf(row) }));
  const reasons = [
    ["background", "missing annotation", ofType("background")],
    ["classification", "annotated as", ofType("classification").filter((entry) => entry.truth >= 0)],
    ["missed", "never detected", missed.map((row) => ({ image: truths.image[row], detection: -1, truth: row }))],
  ];
  const rows = reasons.filter(([type]) => !state.type || type === state.type).flatMap(([, reason, list]) =>
    list.slice(0, MOST_OF_A_REASON).map((entry) => ({ ...entry, reason })));
  const describe = ({ detection, truth, reason }) => {
    if (detection < 0) return `${classes[truths.label[truth]]}: ${reason}`;
    const what = truth < 0 ? reason : `${reason} ${classes[truths.label[truth]]}`;
    return `${classAndScore(detector.label[detection], detector.score[detection])}: ${what}`;
  };
  return { rows, entry: (entry) => entry, describe };
}

// The chosen list: `rows`, a function of a row to its entry, and one of an entry to its caption.
let listed = null, listedFor = "";

function listNow() {
  const key = JSON.stringify([stepNow(), state.class, state.type, state.pair, state.list, state.order, state.find]);
  if (key !== listedFor) {
    listed = { images: listImages, errors: listErrors, label_errors: listLabelErrors }[state.list]();
    listedFor = key;
  }
  return listed;
}

function tile(entry, describe) {
  const title = titleOf(entry.image), text = describe(entry), id = idOf(entry.image);
  return make("li", {}, make("button", { type: "button", "data-key": keyOf(entry), click: () => set({ image: keyOf(entry) }) },
    make("span", { class: "stage" }, picture(entry, true)),
    make("strong", { title }, title), ...(id ? [make("span", { class: "description" }, id)] : []),
    make("span", { class: "description caption", title: text }, text)));
}

// What the list shows, and the sums of its captions.
function galleryText({ rows, now }) {
  const which = [state.class && `class ${state.class}`, state.type && inSentence(state.type),
    state.pair.replace("\u2192", " predicted as "), state.find && `“${state.find}”`].filter(Boolean).join(", ");
  const what = { images: ["image", "images"], errors: ["false positive", "false positives"], label_errors: ["possible label error", "possible label errors"] }[state.list];
  const sum = (column) => integer(rows.reduce((total, image) => total + column[image], 0));
  return `${integer(rows.length)} ${what[rows.length === 1 ? 0 : 1]}${which && ` of ${which}`}${atScore(" at ")}` +
    (now && !state.type ? `: ${sum(now.wrong)} FP, ${sum(now.lost)} FN.` : ".");
}

function updateGallery(changed) {
  if (!changed || ["class", "type", "pair", "list", "order", "find"].some((key) => changed.has(key))) maxTiles = FIRST;
  keepFocus("gallery-lists", () => $("gallery-lists").replaceChildren(...Object.entries(LISTS).map(([name, title]) => make("button", {
    type: "button", "aria-pressed": String(state.list === name), click: () => set({ list: name, pair: "" }),
  }, title))));
  $("gallery-order").value = state.order || "errors";
  $("gallery-order").closest("label").hidden = state.list !== "images";
  if ($("find").value !== state.find) $("find").value = state.find;
  keepFocus("gallery-results", () => resultButtons("gallery-results"));
  const list = listNow(), shown = Array.from(list.rows.slice(0, maxTiles), list.entry);
  $("gallery-text").textContent = galleryText(list);
  keepFocus("gallery-tiles", () => $("gallery-tiles").replaceChildren(...shown.map((entry) => tile(entry, list.describe))));
  offerMore(list.rows.length - maxTiles);
}

function offerMore(left) {
  $("gallery-more").hidden = left <= 0;
  $("gallery-more").textContent = `Show ${Math.min(FIRST, left)} more`;
}

function moreTiles() {
  const list = listNow(), next = list.rows.slice(maxTiles, maxTiles + FIRST);
  $("gallery-tiles").append(...Array.from(next, (row) => tile(list.entry(row), list.describe)));
  maxTiles += FIRST;
  offerMore(list.rows.length - maxTiles);
}

// Arrows move between the tiles, as they are laid out; Enter opens one.
function tileKeys(event) {
  const buttons = [...$("gallery-tiles").querySelectorAll("button")], at = buttons.indexOf(event.target);
  if (at < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
  const top = buttons[0].offsetTop, columns = Math.max(buttons.filter((button) => button.offsetTop === top).length, 1);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + columns, ArrowUp: at - columns, Home: 0, End: buttons.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  if (to >= buttons.length && !$("gallery-more").hidden) moreTiles();
  $("gallery-tiles").querySelectorAll("button")[to]?.focus();
}

function wireGallery() {
  const order = $("gallery-order");
  for (const [name, title] of Object.entries(ORDERS)) {
    if (images.baseline || !["worse", "better"].includes(name)) order.append(make("option", { value: name }, title));
  }
  order.addEventListener("change", () => set({ order: order.value === "errors" ? "" : order.value }));
  $("find").addEventListener("input", () => set({ find: $("find").value }));
  $("gallery-more").addEventListener("click", moreTiles);
  $("gallery-tiles").addEventListener("keydown", tileKeys);
}
