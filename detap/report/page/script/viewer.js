// One image, of the baseline and of this detector side by side.

let opener = null;

// The detectors to draw: heading, name, columns and entry. A detection of this one is none of the other.
function detectorsOf(entry) {
  if (!images.baseline) return [["", "", images.detector, entry]];
  const { name, current } = model.baseline;
  return [["Baseline", name, images.baseline, { ...entry, detection: -1 }], ["This detector", current, images.detector, entry]];
}

function countsText(image, step, detections) {
  const count = (objects, results) => integer(objects.filter(({ result }) => results.includes(result)).length);
  const drawn = detectionsAt(image, step, detections), truths = truthsAt(image, step, detections);
  return `${count(drawn, ["true-positive"])} TP, ${count(drawn, ERROR_TYPES)} FP, ${count(truths, ["missed", "near-miss"])} FN`;
}

function updateViewer() {
  const viewer = $("viewer"), entry = entryOf(state.image);
  if (!entry) {
    if (viewer.open) viewer.close();
    return;
  }
  const { image } = entry, step = stepNow(), index = indexNow(), list = listNow();
  const shownEntry = index < 0 ? null : list.entry(list.rows[index]);
  const detectors = detectorsOf(entry), compared = detectors.length > 1;
  $("viewer-title").textContent = titleOf(image);
  $("viewer-text").textContent = [
    idOf(image), compared ? atScore("") : `${countsText(image, step, images.detector)}${atScore(" at ")}`,
    shownEntry && state.list !== "images" && list.describe(shownEntry), shownEntry && `${integer(index + 1)} of ${integer(list.rows.length)}`,
  ].filter(Boolean).join(" · ");
  viewer.classList.toggle("compared", compared);
  $("viewer-picture").replaceChildren(...detectors.map(([title, name, detections, own]) => compared
    ? make("figure", {}, make("figcaption", {}, make("strong", {}, title), make("span", { class: "path" }, name),
      make("span", { class: "counts" }, countsText(image, step, detections))), picture(own, false, detections, 32))
    : picture(own, false)));
  keepFocus("viewer-results", () => resultButtons("viewer-results"));
  $("viewer-table").replaceChildren(
    head(heading(shapeOf(images.truths, images.truths.start[image]) === null ? "box" : "shape"), heading("class"), heading("score", "fraction"), heading("result"), heading("matched or nearest"), heading("IoU", "fraction")),
    ...detectors.map(([title, , detections, own]) => make("tbody", {},
      ...(compared ? [make("tr", { class: "group" }, make("th", { scope: "rowgroup", colspan: 6 }, title))] : []), ...viewerRows(own, step, detections))));
  $("previous").disabled = index <= 0;
  $("next").disabled = index < 0 || index >= list.rows.length - 1;
  if (!viewer.open) {
    opener = document.activeElement;
    viewer.showModal();
    $("viewer-title").focus();
  }
}

function viewerRows(entry, step, detections) {
  const { image } = entry, [firstTruth, firstDetection] = [images.truths.start[image], detections.start[image]];
  const rows = [
    ...truthsAt(image, step, detections).filter((truth) => isDrawn(entry, truth, true, false)).map(({ row, label, result, by }) => ({ focal: row === entry.truth,
      cells: [`GT ${row - firstTruth + 1}`, classes[label], NOTHING, LABELS[result], by < 0 ? NOTHING : `detection ${by - firstDetection + 1}`, NOTHING] })),
    ...detectionsAt(image, step, detections).filter((detection) => isDrawn(entry, detection, false, false)).map(({ row, label, score, result, truth, overlap }) => ({ focal: row === entry.detection,
      cells: [`detection ${row - firstDetection + 1}`, classes[label], fraction(score), LABELS[result],
        truth < 0 ? NOTHING : `${classes[images.truths.label[truth]]} ${truth - firstTruth + 1}`, truth < 0 ? NOTHING : fraction(overlap, 3)] })),
  ];
  return rows.map(({ focal, cells }) => make("tr", { class: focal ? "focal" : null },
    make("th", { scope: "row" }, cells[0]), ...cells.slice(1).map((text, n) => cell(text, n === 1 || n === 4 ? "fraction" : null))));
}

// The index of the open entry in the list; -1 if the list does not have it.
function indexNow() {
  const list = listNow();
  return list.rows.findIndex((row) => keyOf(list.entry(row)) === state.image);
}

function openNext(by) {
  const list = listNow(), index = indexNow();
  if (index >= 0 && index + by >= 0 && index + by < list.rows.length) set({ image: keyOf(list.entry(list.rows[index + by])) });
}

function wireViewer() {
  $("previous").addEventListener("click", () => openNext(-1));
  $("next").addEventListener("click", () => openNext(1));
  $("close").addEventListener("click", () => $("viewer").close());
  $("viewer").addEventListener("close", () => {
    const shown = [...$("gallery-tiles").querySelectorAll("button")].find((button) => button.dataset.key === state.image);
    set({ image: "" });
    (shown || opener)?.focus?.();
  });
  $("viewer").addEventListener("click", (event) => { if (event.target === $("viewer")) $("viewer").close(); });
  $("viewer").addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const by = { ArrowRight: 1, n: 1, j: 1, ArrowLeft: -1, p: -1, k: -1 }[event.key];
    if (by) { event.preventDefault(); openNext(by); }
  });
}
