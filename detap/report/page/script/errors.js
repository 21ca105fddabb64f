// Error analysis (TIDE).

function updateErrors() {
  const k = chosenClass(), step = stepNow();
  const of = (type) => ({
    name: type.name,
    before: k < 0 || type.before === null ? type.before : type.before_by_class[k],
    deltaAp: k < 0 ? type.delta_ap : type.delta_ap_by_class[k],
    count: k < 0 ? type.count : type.count_by_class[k],
    atScore: countAtScore(type.name, k, step, counts, images?.detector),
    beforeAtScore: countsBefore && countAtScore(type.name, k, step, countsBefore, images?.baseline),
  });
  const all = analysis.errors.types.map(of);
  const six = all.slice(0, 6).sort((a, b) => (b.deltaAp || 0) - (a.deltaAp || 0));
  const largest = Math.max(...all.map((row) => row.deltaAp || 0), 1e-12);
  const compared = countsBefore !== null, wide = compared ? "wide" : null;
  const row = (entry, choice) => make("tr", { class: state.type === entry.name ? "chosen" : null },
    make("th", { scope: "row" },
      choice ? make("button", { type: "button", "aria-pressed": String(state.type === entry.name),
        click: () => set({ type: state.type === entry.name ? "" : entry.name }) }, LABELS[entry.name])
        : LABELS[entry.name],
      make("span", { class: "description wide" }, DESCRIPTIONS[entry.name])),
    make("td", {}, meter((entry.deltaAp || 0) / largest), signed(entry.deltaAp)),
    cell(integer(entry.count), wide), ...(compared ? [cell(integer(entry.before), wide)] : []),
    cell(integer(entry.atScore)), ...(compared ? [cell(integer(entry.beforeAtScore))] : []));
  $("errors-ap").textContent = fraction(k < 0 ? analysis.average_precision
    : analysis.average_precision_by_class[k]) + (k < 0 ? "" : ` for ${state.class}`);
  keepFocus("errors-table", () => $("errors-table").replaceChildren(
    head(heading("type"), heading("dAP if fixed"), ...[["all scores", wide], [`score >= ${scoreText(scoreNow())}`, null]]
      .flatMap(([which, kind]) => [heading(`count, ${which}`, kind), ...(compared ? [heading(`baseline count, ${which}`, kind)] : [])])),
    make("tbody", {}, ...six.map((entry) => row(entry, true))),
    make("tbody", { class: "across" }, ...all.slice(6).map((entry) => row(entry, false)))));
}

// Of a detector: its counts, and its columns (undefined until the images are unpacked).
function countAtScore(name, k, step, of, detections) {
  const at = point(k, step, of);
  if (name === "missed") return detections ? tally(detections, step, k, "missed").lost.reduce((a, b) => a + b, 0) : null;
  if (name === "false_negatives") return at.lost;
  if (name === "false_positives") return at.wrong;
  return step < 0 ? 0 : (k < 0 ? of.total : of.byClass[k])[ERROR_TYPES.indexOf(name) + 1][step];
}
