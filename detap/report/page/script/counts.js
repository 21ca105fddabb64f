// True positives and errors over the score.

const op = analysis && analysis.operating;
const steps = op ? op.scores.length : 0;
const hasScores = Boolean(analysis?.errors);  // otherwise one step has all detections

// Cumulative counts of a detector: byClass[class][outcome][step], and total[outcome][step] of all
// classes. Outcome 0 is a true positive, then come the error types.
function countsOf(added) {
  const byClass = added.map((outcomes) => outcomes.map((text) => {
    const changes = text.split(",");
    let sum = 0;
    return Int32Array.from({ length: steps }, (_, n) => sum += Number(changes[n] ?? 0));
  }));
  const total = [0, ...ERROR_TYPES].map((_, outcome) => Int32Array.from({ length: steps },
    (_, n) => byClass.reduce((sum, outcomes) => sum + outcomes[outcome][n], 0)));
  return { byClass, total };
}
const counts = op && countsOf(op.added);
const countsBefore = op?.added_before ? countsOf(op.added_before) : null;
const truthsOf = (k) => k < 0 ? analysis.truths.reduce((a, b) => a + b, 0) : analysis.truths[k];

// Of a class (-1: all) at a step.
function point(k, step, { byClass, total } = counts) {
  const outcomes = k < 0 ? total : byClass[k];
  const right = step < 0 ? 0 : outcomes[0][step];
  const wrong = step < 0 ? 0 : outcomes.slice(1).reduce((sum, of) => sum + of[step], 0);
  const lost = truthsOf(k) - right;
  return {
    right, wrong, lost, precision: ratio(right, right + wrong), recall: ratio(right, right + lost),
    f1: ratio(2 * right, 2 * right + wrong + lost), perImage: ratio(wrong, model.images),
  };
}

// By default the step of --score-threshold, or of the best F1.
const firstStep = op?.start ?? op?.best ?? steps - 1;

// The last step whose score is not below the requested one.
function stepNow() {
  if (!steps) return -1;
  if (state.score === "") return firstStep;
  const requested = Number(state.score);
  return Math.max(op.scores.findLastIndex((score) => score >= requested), 0);
}
const scoreNow = () => steps ? op.scores[stepNow()] : null;
const atScore = (before) => hasScores ? `${before}score >= ${scoreText(scoreNow())}` : "";
