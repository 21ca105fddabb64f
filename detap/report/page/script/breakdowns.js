// Breakdowns.

const BREAKDOWNS = {
  size: ["By size", "square root of the area in pixels"], aspect_ratio: ["By aspect ratio", "width / height"],
  crowding: ["By crowding", "objects in the image"], position: ["By position", "recall by image region (3 × 3), shown by the color"],
};

// The sum of what is added at each step up to the slider's.
function countNow(text) {
  const added = text.split(",").slice(0, stepNow() + 1);
  return added.reduce((sum, value) => sum + Number(value), 0);
}

function updateBreakdowns() {
  $("breakdowns-score").textContent = atScore(", ");
  $("breakdowns-body").replaceChildren(...analysis.breakdowns.map((data) => {
    const [matched, detections, right] = [data.matched, data.detections, data.true_positives].map((texts) => texts.map(countNow));
    const part = { ...data, matched, detections, true_positives: right };
    const [title, description] = BREAKDOWNS[part.name];
    return make("div", {}, make("h3", {}, title, make("span", { class: "description" }, description)),
      part.name === "position" ? regionTable(part) : breakdownTable(part, title));
  }));
}

// "16-32" holds 16, but not 32: of whole numbers that is 16 to 31.
function groupName(part, name) {
  const [low, high] = name.split("-");
  if (!high) return `${low} or more`;
  if (part.name !== "crowding") return `${low} – ${high}`;
  return Number(high) - 1 === Number(low) ? low : `${low} – ${high - 1}`;
}

function breakdownTable(part, title) {
  const rows = part.groups.map((name, n) => {
    const recall = ratio(part.matched[n], part.truths[n]), precision = ratio(part.true_positives[n], part.detections[n]);
    return make("tr", {}, make("th", { scope: "row" }, groupName(part, name)), cell(integer(part.truths[n])),
      make("td", {}, meter(recall), fraction(recall, 3)), make("td", {}, meter(precision), fraction(precision, 3)));
  });
  return make("div", { class: "scroll short", tabindex: "0", role: "region", "aria-label": title },
    make("table", {}, head(heading("group"), heading("GT"), heading("recall"), heading("precision")), make("tbody", {}, ...rows)));
}

function regionTable(part) {
  const rows = [0, 1, 2].map((row) => make("tr", {}, ...[0, 1, 2].map((column) => {
    const n = 3 * row + column, recall = ratio(part.matched[n], part.truths[n]);
    const node = make("td", {}, make("strong", {}, fraction(recall, 3)), make("small", {}, `${integer(part.truths[n])} ${part.truths[n] === 1 ? "object" : "objects"}`));
    node.title = part.groups[n];
    paint(node, ((recall || 0) / 2) ** 2);  // the paler half of the ramp: all figures in one color
    return node;
  })));
  return make("table", { class: "regions", "aria-label": "Recall by image region (3 × 3)" }, make("tbody", {}, ...rows));
}
