// The bar of filters.

function fillBar() {
  const pick = $("class");
  pick.append(make("option", { value: "" }, "All classes"));
  classes.forEach((name) => pick.append(make("option", { value: name }, name)));
  pick.addEventListener("change", () => set({ class: pick.value, pair: "" }));
  const type = $("type");
  type.append(make("option", { value: "" }, "All errors"));
  for (const kind of [...ERROR_TYPES, "missed"]) type.append(make("option", { value: kind }, LABELS[kind]));
  type.addEventListener("change", () => set({ type: type.value }));
  const slider = $("score");
  slider.max = Math.max(steps - 1, 0);
  slider.disabled = steps < 2;
  slider.addEventListener("input", () => chooseStep(steps - 1 - slider.valueAsNumber));
  $("best").addEventListener("click", () => {
    const k = chosenClass();
    const best = k < 0 ? op.best : op.best_by_class[k];
    if (best !== null) chooseStep(best);
  });
  $("all").addEventListener("click", () => chooseStep(steps - 1));
  $("reset").addEventListener("click", () => set({ ...DEFAULTS, list: state.list, columns: state.columns }));
}

const chooseStep = (step) => set({ score: step === firstStep ? "" : String(op.scores[step]) });

function updateBar() {
  const step = stepNow(), k = chosenClass(), at = point(k, step);
  $("class").value = k < 0 ? "" : state.class;
  $("type").value = state.type;
  $("score").value = steps - 1 - step;
  const text = scoreText(scoreNow());
  $("score-text").textContent = text;
  $("score").setAttribute("aria-valuetext",
    `${text}, precision ${fraction(at.precision, 3)}, recall ${fraction(at.recall, 3)}`);
  $("status").textContent = `${k < 0 ? "All classes" : state.class}${atScore(", ")}, ` +
    (state.type ? LABELS[state.type] : "all errors");
}
