// One image.

let opener = null;

function updateViewer() {
  const viewer = $("viewer"), entry = gallery.entries[Number(state.image)];
  if (state.image === "" || !entry) {
    if (viewer.open) viewer.close();
    return;
  }
  const image = gallery.images[entry.image], score = scoreNow() ?? -Infinity;
  const list = entriesShown(), index = list.findIndex((other) => other.index === Number(state.image));
  $("viewer-title").textContent = image.name;
  $("viewer-text").textContent = describe(entry) + (index < 0 ? "" : ` · ${index + 1} of ${list.length}`) +
    (image.omitted ? ` · ${integer(image.omitted)} detections with lower scores are not drawn` : "");
  $("viewer-picture").replaceChildren(picture(entry, false));
  keepFocus("viewer-results", () => resultButtons("viewer-results"));
  const truthName = (n) => n < 0 ? NOTHING : `${classes[image.truths[n][0]]} ${n + 1}`;
  const rows = [
    ...image.truths.map(([label, , , , , result, by], n) => ({ focal: n === entry.truth, group: resultGroup(result),
      cells: [`GT ${n + 1}`, classes[label], NOTHING, LABELS[result], by < 0 ? NOTHING : `detection ${by + 1}`, NOTHING] })),
    ...image.detections.map(([label, s, , , , , result, truth, overlap], n) => ({ focal: n === entry.detection, score: s, group: resultGroup(result),
      cells: [`detection ${n + 1}`, classes[label], fraction(s), LABELS[result], truthName(truth), truth < 0 ? NOTHING : fraction(overlap, 3)] })),
  ].filter((row) => row.focal || (!isHidden(row.group) && (row.score === undefined || row.score >= score)));
  $("viewer-table").replaceChildren(
    head(heading(image.outlines ? "shape" : "box"), heading("class"), heading("score", "fraction"), heading("result"), heading("matched or nearest"), heading("IoU", "fraction")),
    make("tbody", {}, ...rows.map((row) => make("tr", { class: row.focal ? "focal" : null },
      make("th", { scope: "row" }, row.cells[0]), ...row.cells.slice(1).map((text, n) => cell(text, n === 1 || n === 4 ? "fraction" : null))))));
  $("previous").disabled = index <= 0;
  $("next").disabled = index < 0 || index >= list.length - 1;
  if (!viewer.open) {
    opener = document.activeElement;
    viewer.showModal();
    $("viewer-title").focus();
  }
}

function step(by) {
  const list = entriesShown(), index = list.findIndex((entry) => entry.index === Number(state.image));
  const next = list[index + by];
  if (next) set({ image: String(next.index) });
}

function wireViewer() {
  $("previous").addEventListener("click", () => step(-1));
  $("next").addEventListener("click", () => step(1));
  $("close").addEventListener("click", () => $("viewer").close());
  $("viewer").addEventListener("close", () => { set({ image: "" }); opener?.focus?.(); });
  $("viewer").addEventListener("click", (event) => { if (event.target === $("viewer")) $("viewer").close(); });
  $("viewer").addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const by = { ArrowRight: 1, n: 1, j: 1, ArrowLeft: -1, p: -1, k: -1 }[event.key];
    if (by) { event.preventDefault(); step(by); }
  });
}
