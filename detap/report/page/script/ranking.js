// Tables that are sorted by their headings, the heat map, and the command for a pair.

const numberOf = (text) => Number(text.replaceAll(",", "") || NaN);

function valueOf(row, column) {
  const { dataset, textContent } = row.cells[column];
  const number = numberOf(dataset.value ?? textContent);
  return Number.isNaN(number) ? textContent : number;
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

function paintAll() {
  for (const node of document.querySelectorAll("[data-part]")) paint(node, Math.min(1, Math.max(0, Number(node.dataset.part))));
}
paintAll();
dark.addEventListener("change", paintAll);

for (const id of ["before", "after"]) {
  $(id)?.addEventListener("change", () => { $(`${id}-path`).textContent = $(id).value; });
}
