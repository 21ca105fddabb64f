// Fill the page, and update it when the state changes.

function start() {
  readFragment();
  $("filter").value = state.filter;
  $("filter").addEventListener("input", () => set({ filter: $("filter").value }));
  $("csv").addEventListener("click", downloadCsv);
  fillColumns();
  section(["class", "score", "sort", "filter", "columns"], updateClasses);
  if (model.baseline) {
    section(["class"], updateChange);
    $("change-more").addEventListener("click", () => { allChanges = true; updateChange(); });
  }
  if (analysis) {
    fillBar();
    section(["class", "type", "score"], updateBar);
  }
  if (hasScores) {
    section(["class", "type", "score"], updateErrors);
    section(["class", "score"], updateTiles);
    section(["class", "score"], (changed) => {
      const plot = charts["operating-chart"];
      if (!plot) return;
      if (!changed || changed.has("class")) plot.setData(operatingData()); else plot.redraw(false);
    });
    section(["class"], () => { buildCurves(); updateCurveTable(); });
    section(["score"], (changed) => { if (changed && !changed.has("class") && state.class) charts["curves-chart"]?.redraw(false); });
    section(["class"], updateCalibration);
    histogram("scores", analysis.histograms.score, "Detections by score, true and false positives");
    section(["score"], updateOverlaps, true);
    buildOperating();
  }
  if (analysis) {
    section(["class", "score"], updateConfusion, true);
    unpackConfusion();
    $("confusion-more").addEventListener("click", showMoreClasses);
    $("confusion-table").addEventListener("keydown", matrixKeys);
    $("confusion-table").addEventListener("click", (event) => matrixCell(event.target.closest("td[data-cell]")));
    section(["score"], updateBreakdowns, true);
    if (model.folder || $("images").textContent) unpackImages().then(startImages, (error) => showNoImages(`${error.message}.`));
    else showNoImages("The images are left out; see the notes.");
  }
  show(null);
  wireRows();
  wireSections();
  dark.addEventListener("change", () => {
    if (hasScores) { buildOperating(); buildCurves(); }
    if (analysis) { updateConfusion(); updateBreakdowns(); }
  });
  new ResizeObserver(() => {
    for (const [id, plot] of Object.entries(charts)) {
      const { clientWidth, clientHeight } = $(id);
      if (clientWidth && plot.width !== clientWidth) plot.setSize({ width: clientWidth, height: clientHeight });
    }
  }).observe($("main"));
  addEventListener("hashchange", () => { if (readFragment()) show(null); });
}

function startImages() {
  section(["class", "type", "score", "pair", "list", "order", "find", "hide"], updateGallery, true);
  section(["class", "type", "score", "pair", "list", "order", "find", "hide", "image"], updateViewer, true);
  wireGallery();
  wireViewer();
  if (hasScores) updateErrors();  // counts missed ground truths
  updateGallery(null);
  updateViewer();
  $("gallery").removeAttribute("aria-busy");
}

function showNoImages(text) {
  $("gallery-text").textContent = text;
  $("gallery-order").closest(".tools").hidden = true;
  $("gallery").removeAttribute("aria-busy");
}

start();
