// Tables that are sorted by their headings, the heat map, and the command for a pair.

// A star behind a number says that it is significant.
function valueOf(row, column) {
  const text = row.cells[column].textContent, number = Number(text.replaceAll(/[,*]/g, "") || NaN);
  return Number.isNaN(number) ? text : number;
}

// Numbers before text, which is an undefined number or a name; equal rows keep their order.
function compare(a, b, sign) {
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return sign * (typeof a === "number" ? a - b : a.localeCompare(b, "en"));
}

function sort(table, title) {
  const column = title.cellIndex, words = title.classList.contains("name");
  const before = title.getAttribute("aria-sort");
  const falls = before ? before === "ascending" : !words;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  title.setAttribute("aria-sort", falls ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => compare(valueOf(a, column), valueOf(b, column), falls ? -1 : 1));
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll("table")) {
  for (const title of table.tHead?.rows[0].querySelectorAll("th") ?? []) {
    const button = make("button", { type: "button", click: () => sort(table, title) }, title.textContent);
    title.replaceChildren(button);
  }
}

// The interval of each detector, drawn on one scale, and a line at the value of the reference.
function drawIntervals(table) {
  const titles = table.tHead.rows[0], rows = [...table.tBodies[0].rows];
  const low = [...titles.cells].findIndex((title) => title.textContent === "CI low");
  if (low < 0) return;
  const ends = rows.map((row) => [low - 1, low, low + 1].map((column) => valueOf(row, column)));
  const least = Math.min(...ends.flat()), scale = 148 / (Math.max(...ends.flat()) - least || 1);
  const drawn = ends.map((values) => values.map((value) => 6 + (value - least) * scale));
  const reference = drawn[table.closest("[data-reference]").dataset.reference][0];
  titles.insertCell(low + 2);
  rows.forEach((row, n) => {
    const [value, from, to] = drawn[n], text = `${ends[n][1]} to ${ends[n][2]}`;
    const cell = row.insertCell(low + 2);
    cell.className = "drawn";
    cell.append(draw("svg", { viewBox: "0 0 160 14", role: "img", "aria-label": text },
      draw("path", { class: "reference", d: `M${reference} 0v14` }),
      draw("path", { class: "range", d: `M${from} 7H${to}` }), draw("circle", { cx: value, cy: 7, r: 4 })));
  });
}
drawIntervals($("ranking").querySelector("table"));

function paintAll() {
  for (const node of $("classes").querySelectorAll("td.fraction")) {
    const value = Number(node.textContent);
    if (!Number.isNaN(value)) paint(node, Math.min(1, Math.max(0, value)));
  }
}
paintAll();
dark.addEventListener("change", paintAll);

for (const id of ["before", "after"]) {
  $(id)?.addEventListener("change", () => { $(`${id}-path`).textContent = $(id).value; });
}
