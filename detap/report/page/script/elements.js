// Elements, numbers as text, and tables.

const $ = (id) => document.getElementById(id);

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "click") node.addEventListener("click", value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

const make = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const NOTHING = "–";
const grouped = new Intl.NumberFormat("en-US");  // toLocaleString would make one for each number
const integer = (value) => value === null || value === undefined ? NOTHING : grouped.format(value);

// A value above 0 is never shown as 0, and a value below 1 never as 1.
function fraction(value, decimals = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return NOTHING;
  const least = 10 ** -decimals;
  if (value > 0 && value < least / 2) value = least;
  else if (value < 1 - 1e-9 && value >= 1 - least / 2) value = 1 - least;
  return value.toFixed(decimals).replace(/^-(0\.0*)$/, "$1");
}

// A score threshold is never rounded up, so that it keeps the same detections.
function scoreText(value) {
  if (value === null) return NOTHING;
  for (let decimals = 4; decimals < 17; decimals++) {
    const text = value.toFixed(decimals), above = value - Number(text);
    if (above >= 0 && above <= 1e-6 * Math.abs(value)) return text;
  }
  return String(value);
}

function signed(value, decimals = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return NOTHING;
  if (value === 0) return (0).toFixed(decimals);
  const size = Math.max(Math.abs(value), 10 ** -decimals);
  return (value > 0 ? "+" : "−") + size.toFixed(decimals);
}

const ratio = (part, all) => all ? part / all : null;

const head = (...cells) => make("thead", {}, make("tr", {}, ...cells));
const heading = (text, kind) => make("th", { scope: "col", class: kind }, text);
const cell = (text, kind) => make("td", { class: kind }, text);

function tiles(id, entries) {
  $(id).replaceChildren(...entries.map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

// The sample of a line or area in a legend or on a button.
const swatch = (...marks) => draw("svg", { viewBox: "0 0 30 10", "aria-hidden": "true" }, ...marks);
const lineMark = (stroke, width, dash = "") =>
  draw("line", { x1: 1, x2: 29, y1: 5, y2: 5, stroke, "stroke-width": width, "stroke-dasharray": dash });
const legend = (id, ...entries) =>
  $(id).replaceChildren(...entries.map(([text, ...marks]) => make("span", {}, swatch(...marks), text)));

function meter(part) {
  if (part === null) return "";
  const bar = make("span", { class: "meter", "aria-hidden": "true" });
  if (part > 0) bar.append(make("i"));  // of nothing there is no bar, not even a thin one
  if (part > 0) bar.firstChild.style.width = `${Math.min(1, part) * 100}%`;
  return bar;
}

// Rebuild an element; its button that had the focus gets it again.
function keepFocus(id, build) {
  const nameOf = (button) => button.dataset.key || button.textContent;
  const active = document.activeElement, name = $(id).contains(active) ? nameOf(active) : null;
  build();
  if (name) [...$(id).querySelectorAll("button")].find((button) => nameOf(button) === name)?.focus();
}

// A row of a table does what the button in its heading does; the button is for the keyboard.
function wireRows() {
  $("main").addEventListener("click", (event) => {
    if (event.target.closest("button, a, input, summary") || String(getSelection())) return;
    event.target.closest("tr")?.querySelector("th[scope=row] > button")?.click();
  });
}
