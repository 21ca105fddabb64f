// The columns of all images, and the results of their objects at a step of the slider.

const pictures = analysis ? JSON.parse(document.getElementById("pictures").textContent) : {};  // address, width and height
let images = null;  // until they are unpacked
let MATCHED, NEAR_MISS, MISSED;

// The data folder is read by a script element: pages opened from files cannot fetch others.
async function packedText() {
  if (!model.folder) return $("images").textContent;
  const script = make("script", { src: `${model.folder}/images.js` });
  await new Promise((resolve, reject) => {
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Error(`${model.folder}/images.js cannot be read`)));
    document.head.append(script);
  });
  return packedImages;
}

async function unpackImages() {
  images = await unpacked(await packedText());
  [MATCHED, NEAR_MISS, MISSED] = ["matched", "near-miss", "missed"].map((name) => images.truth_results.indexOf(name));
  const { truths, detector, baseline } = images;
  images.count = truths.count.length;
  addImages(truths);
  for (const detections of baseline ? [detector, baseline] : [detector]) {
    addImages(detections);
    detections.truth = rowsOf(detections.truth, detections, truths);
    detections.match = rowsOf(detections.match, truths, detections);
    detections.near = rowsOf(detections.near, truths, detections);
  }
}

// The first row of each image, and the image of each row.
function addImages(table) {
  table.start = sums(table.count);
  table.image = new Int32Array(table.start[images.count]);
  for (let n = 0; n < images.count; n++) table.image.fill(n, table.start[n], table.start[n + 1]);
}

// Indices in an image as rows of the other table.
const rowsOf = (indices, table, other) =>
  Int32Array.from(indices, (index, row) => index < 0 ? -1 : other.start[table.image[row]] + index);

const isReached = (detections, row, step) => row >= 0 && detections.step[row] <= step;

// The one place that decides the result of a ground truth, an index of images.truth_results. That of
// a detection is the same at each step.
function truthResult(detections, row, step) {
  if (detections.truth_result[row] !== MATCHED) return detections.truth_result[row];  // not counted
  if (isReached(detections, detections.match[row], step)) return MATCHED;
  return isReached(detections, detections.near[row], step) ? NEAR_MISS : MISSED;
}

const LAST_ERROR = ERROR_TYPES.length;  // results of detections: true positive, the errors, others
const isError = (result) => result >= 1 && result <= LAST_ERROR;

// False positives and negatives of each image, of a class (-1: all) and an error type ("": all).
function tally(detections, step, k, type) {
  const wrong = new Int32Array(images.count), lost = new Int32Array(images.count);
  const { label, result } = detections, only = ERROR_TYPES.indexOf(type) + 1;
  for (let row = 0; row < label.length && type !== "missed"; row++) {
    if (detections.step[row] <= step && isError(result[row]) && (!only || result[row] === only) && (k < 0 || label[row] === k)) wrong[detections.image[row]]++;
  }
  const { truths } = images;
  for (let row = 0; row < truths.label.length && !only; row++) {
    if (k >= 0 && truths.label[row] !== k) continue;
    const now = truthResult(detections, row, step);
    if (now === MISSED || (now === NEAR_MISS && !type)) lost[truths.image[row]]++;
  }
  return { wrong, lost };
}

// The objects and the detections of a detector in an image at a step.
function truthsAt(image, step, detections) {
  const { truths } = images, out = [];
  for (let row = truths.start[image]; row < truths.start[image + 1]; row++) {
    const result = truthResult(detections, row, step);
    const by = result === MATCHED ? detections.match[row] : result === NEAR_MISS ? detections.near[row] : -1;
    out.push({ row, label: truths.label[row], result: images.truth_results[result], box: boxOf(truths, row), by });
  }
  return out;
}

function detectionsAt(image, step, detections) {
  const { start } = detections, out = [];
  for (let row = start[image]; row < start[image + 1] && detections.step[row] <= step; row++) out.push(detectionAt(row, detections));
  return out;
}

function detectionAt(row, detections) {
  const { label, score, result, truth, overlap } = detections;
  return {
    row, label: label[row], score: score[row], result: images.results[result[row]],
    box: boxOf(detections, row), truth: truth[row], overlap: overlap[row] / 1000,
  };
}

const classAndScore = (label, score) => hasScores ? `${classes[label]} ${fraction(score, 2)}` : classes[label];
const boxOf = (table, row) => [table.x[row] / 10, table.y[row] / 10, table.w[row] / 10, table.h[row] / 10];

function extentOf(image) {
  const [width, height] = [images.sizes[2 * image], images.sizes[2 * image + 1]];
  if (width) return [width, height];
  if (pictures[image]) return pictures[image].slice(1);
  const ends = [1, 1];
  for (const table of [images.truths, images.detector, images.baseline].filter(Boolean)) {
    for (let row = table.start[image]; row < table.start[image + 1]; row++) {
      const [x, y, w, h] = boxOf(table, row);
      ends[0] = Math.max(ends[0], x + w); ends[1] = Math.max(ends[1], y + h);
    }
  }
  return ends;
}

const titleOf = (image) => images.files[image] ?? images.names[image];

// The id of an image, where its file name does not say it.
function idOf(image) {
  const [file, name] = [images.files[image], images.names[image]];
  return file === null || file === name || file.replace(/\.[^.]*$/, "") === name ? "" : `id ${name}`;
}
