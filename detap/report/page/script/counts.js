// True positives and errors over the score.

const op = analysis && analysis.operating;
const steps = op ? op.scores.length : 0;

// counts[class][outcome][step]: outcome 0 is a true positive, then the error types; cumulative.
const counts = !op ? [] : op.added.map((outcomes) => outcomes.map((text) => {
  const out = new Int32Array(steps);
  let sum = 0;
  if (steps) text.split(",").forEach((value, index) => { sum += +value; out[index] = sum; });
  return out;
}));
const totals = !op ? [] : [0, 1, 2, 3, 4, 5].map((outcome) => {
  const out = new Int32Array(steps);
  for (const outcomes of counts) for (let n = 0; n < steps; n++) out[n] += outcomes[outcome][n];
  return out;
});
const truthsOf = (k) => k < 0 ? analysis.truths.reduce((a, b) => a + b, 0) : analysis.truths[k];

function point(k, step) {
  const outcomes = k < 0 ? totals : counts[k];
  const right = step < 0 ? 0 : outcomes[0][step];
  let wrong = 0;
  if (step >= 0) for (let kind = 1; kind < 6; kind++) wrong += outcomes[kind][step];
  const lost = truthsOf(k) - right;
  return {
    right, wrong, lost, precision: ratio(right, right + wrong), recall: ratio(right, right + lost),
    f1: ratio(2 * right, 2 * right + wrong + lost), perImage: ratio(wrong, model.images),
  };
}

// The last step whose score is not below the requested one; the best F1 by default.
function stepNow() {
  if (!steps) return -1;
  if (state.score === "") return op.best ?? steps - 1;
  const requested = Number(state.score);
  let low = -1, high = steps - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (op.scores[middle] >= requested) low = middle; else high = middle - 1;
  }
  return Math.max(low, 0);
}
const scoreNow = () => steps ? op.scores[stepNow()] : null;
