// The change against the baseline.

let allChanges = false;

function swing(gain, largest) {
  const bar = make("i", { class: gain < 0 ? "loss" : "gain" });
  bar.style.width = `${largest ? Math.abs(gain) / largest * 100 : 0}%`;
  return make("span", { class: "swing", "aria-hidden": "true" }, bar);
}

function changeRow(row, largest, label) {
  const known = row.before !== null && row.now !== null;
  const difference = known ? row.now - row.before : null;
  const gain = known && row.lower_is_better ? -difference : difference;
  return make("tr", {}, label, cell(fraction(row.before)), cell(fraction(row.now)),
    cell(signed(difference), gain > 0 ? "up" : gain < 0 ? "down" : ""),
    make("td", {}, known ? swing(gain, largest) : ""));
}

function updateChange() {
  const { metrics, classes: rows } = model.baseline;
  const size = (row) => row.before === null || row.now === null ? -1 : Math.abs(row.now - row.before);
  const titles = (first) => head(heading(first), heading("before"), heading("now"),
    heading("diff"), make("td", {}));
  const most = (list) => Math.max(...list.map(size), 1e-12);
  $("change-metrics").replaceChildren(titles("metric"), make("tbody", {},
    ...metrics.map((row) => changeRow(row, most(metrics), make("th", { scope: "row" }, row.name)))));
  const sorted = rows.slice().sort((a, b) => size(b) - size(a)).filter((row) => size(row) > 0);
  const shown = allChanges ? sorted : sorted.slice(0, 8);
  $("change-classes").replaceChildren(titles("class"), make("tbody", {},
    ...shown.map((row) => changeRow(row, most(sorted),
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
