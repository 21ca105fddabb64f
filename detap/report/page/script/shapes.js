// Masks, polygons and keypoints as SVG paths.

// COCO's skeleton of a person's 17 keypoints, from 0.
const SKELETON = [
  [15, 13], [13, 11], [16, 14], [14, 12], [11, 12], [5, 11], [6, 12], [5, 6], [5, 7],
  [6, 8], [7, 9], [8, 10], [1, 2], [0, 1], [0, 2], [1, 3], [2, 4], [3, 5], [4, 6],
];

// The path of a row; null if it is drawn as a box.
function shapeOf(table, row) {
  const { shapes } = table, count = table.label.length;
  if (shapes.corners) return ring(pairs(shapes.corners, 4 * row, 4 * row + 4));
  if (shapes.labeled) return keypoints(shapes, shapes.labeled.length / count, row);
  return shapes.height ? mask(shapes, row) : null;
}

const pairs = (values, begin, end) =>
  Array.from({ length: end - begin }, (_, n) => [values[2 * (begin + n)] / 10, values[2 * (begin + n) + 1] / 10]);
const brief = (value) => String(Math.round(value * 1e4) / 1e4);

// A closed path, with short commands for steps along an axis.
function ring([[left, top], ...others]) {
  let [x, y, path] = [left, top, `M${brief(left)} ${brief(top)}`];
  for (const [right, down] of others) {
    path += down === y ? `h${brief(right - x)}` : right === x ? `v${brief(down - y)}` : `L${brief(right)} ${brief(down)}`;
    [x, y] = [right, down];
  }
  return `${path}Z`;
}

// A cross at each labeled keypoint, joined by the skeleton. Without one OKS compares boxes.
function keypoints(shapes, count, row) {
  const points = pairs(shapes.points, count * row, count * row + count);
  const isLabeled = (n) => shapes.labeled[count * row + n] > 0;
  const labeled = points.filter((_, n) => isLabeled(n));
  if (!labeled.length) return null;
  const range = (axis) => Math.max(...labeled.map((at) => at[axis])) - Math.min(...labeled.map((at) => at[axis]));
  const arm = Math.max(range(0), range(1)) / 40 || 1;
  const cross = ([x, y]) => `M${brief(x - arm)} ${brief(y)}h${brief(2 * arm)}M${brief(x)} ${brief(y - arm)}v${brief(2 * arm)}`;
  const joined = count === 17 ? SKELETON.filter(([i, j]) => isLabeled(i) && isLabeled(j)) : [];
  return labeled.map(cross).join("") + joined.map(([i, j]) => `M${points[i].map(brief).join(" ")}L${points[j].map(brief).join(" ")}`).join("");
}

// The polygons of a mask, or the edges of its pixels.
function mask(shapes, row) {
  if (!shapes.ringStart) {
    shapes.ringStart = sums(shapes.rings);
    shapes.pointStart = sums(shapes.ring_points);
    shapes.runStart = sums(shapes.runs);
  }
  const [first, last] = [shapes.ringStart[row], shapes.ringStart[row + 1]];
  if (last > first) {
    return Array.from({ length: last - first }, (_, n) =>
      ring(pairs(shapes.points, shapes.pointStart[first + n], shapes.pointStart[first + n + 1]))).join("");
  }
  const runs = Array.from(shapes.lengths.subarray(shapes.runStart[row], shapes.runStart[row + 1]));
  for (let n = 2; n < runs.length; n++) runs[n] += runs[n - 2];
  return edges(runs, shapes.height[row]).map(ring).join("");
}

// The edges of the set pixels as closed rings of corners. Runs go down the columns.
function edges(runs, height) {
  const columns = new Map();  // column: row of an edge across it, true if pixels begin there
  let at = 0;
  runs.forEach((length, index) => {
    for (let begin = at, end = at + length; index % 2 && begin < end;) {
      const x = Math.floor(begin / height), last = Math.min(end, (x + 1) * height);
      const column = columns.get(x) ?? columns.set(x, new Map()).get(x), top = begin - x * height;
      if (column.get(top) === false) column.delete(top); else column.set(top, true);
      column.set(last - x * height, false);
      begin = last;
    }
    at += length;
  });
  // A corner is where one of two columns has an edge; where two pixels touch there are two corners.
  const corners = [], none = new Map();
  for (const x of [...new Set([...columns.keys()].flatMap((n) => [n, n + 1]))].sort((a, b) => a - b)) {
    const [left, right] = [columns.get(x - 1) ?? none, columns.get(x) ?? none];
    for (const y of [...new Set([...left.keys(), ...right.keys()])].sort((a, b) => a - b)) {
      if (left.get(y) === right.get(y)) continue;
      corners.push([x, y]);
      if (left.has(y) && right.has(y)) corners.push([x, y]);
    }
  }
  // Along a row or column, every second segment between corners is an edge.
  const order = [...corners.keys()].sort((a, b) => corners[a][1] - corners[b][1] || a - b), across = [];
  for (let n = 0; n < order.length; n += 2) {
    across[order[n]] = order[n + 1];
    across[order[n + 1]] = order[n];
  }
  const left = new Set(corners.keys()), rings = [];
  for (const start of left) {
    const points = [];
    for (let corner = start; left.has(corner); corner = across[corner] ^ 1) {
      points.push(corners[corner], corners[across[corner]]);
      left.delete(corner);
      left.delete(across[corner]);
    }
    rings.push(points);
  }
  return rings;
}

function sums(counts) {
  let sum = 0;
  return Int32Array.from([0, ...counts], (count) => sum += count);
}
