// The change against the baseline.

let allChanges = false;

function swing(gain, largest, isNoise) {
  const bar = make("i", { class: (gain < 0 ? "loss" : "gain") + (isNoise ? " noise" : "") });
  bar.style.width = `${largest ? Math.abs(gain) / largest * 100 : 0}%`;
  return make("span", { class: "swing", "aria-hidden": "true" }, bar);
}

function changeRow(row, largest, label, interval) {
  const { difference } = row, gain = row.lower_is_better ? -difference : difference;
  const isNoise = !(row.low > 0 || row.high < 0);
  return make("tr", {}, label, cell(fraction(row.first)), cell(fraction(row.second)),
    cell(signed(difference), isNoise ? "" : gain > 0 ? "up" : "down"), ...interval,
    make("td", {}, difference === null ? "" : swing(gain, largest, isNoise)));
}

// A limit of null is one of a metric without an interval.
const intervalCell = ({ low, high }) => cell(low === null ? NOTHING : `${signed(low)} to ${signed(high)}`, "interval");

function updateChange() {
  const { metrics, classes: rows, compared } = model.baseline;
  const size = (row) => row.difference === null ? -1 : Math.abs(row.difference);
  const titles = (first) => head(heading(first), heading("before"), heading("now"),
    heading("diff"), ...(compared ? [heading("95 % CI of diff")] : []), make("td", {}));
  const most = (list) => Math.max(...list.map(size), 1e-12);
  const rowOf = (row, largest, label) => changeRow(row, largest, label, compared ? [intervalCell(row)] : []);
  $("change-metrics").replaceChildren(titles("metric"), make("tbody", {},
    ...metrics.map((row) => rowOf(row, most(metrics), make("th", { scope: "row" }, row.name)))));
  const sorted = rows.slice().sort((a, b) => size(b) - size(a)).filter((row) => size(row) > 0);
  const shown = allChanges ? sorted : sorted.slice(0, 8);
  $("change-classes").replaceChildren(titles("class"), make("tbody", {},
    ...shown.map((row) => rowOf(row, most(sorted),
      make("th", { scope: "row" }, classButton(classes.indexOf(row.name)))))));
  if (!shown.length) $("change-classes").append(make("tbody", {}, make("tr", {}, cell("No class changed."))));
  $("change-more").hidden = shown.length === sorted.length;
  $("change-more").textContent = `Show all ${sorted.length}`;
}

function classButton(k) {
  const name = classes[k];
  return make("button", {
    type: "button", title: name, "aria-pressed": String(state.class === name),
    click: () => set({ class: state.class === name ? "" : name, pair: "" }),
  }, name);
}
