// One state drives every section. It is stored in the URL fragment, so a view can be shared as a
// link.

const DEFAULTS = {
  class: "", type: "", score: "", sort: "", filter: "", columns: "", pair: "", list: "images", hide: "",
  image: "", at: "", order: "", find: "",
};
const state = { ...DEFAULTS };

// A link may come from another run: invalid values are replaced by defaults.
const VALID = {
  class: (value) => classes.includes(value),
  type: (value) => ERROR_TYPES.includes(value) || value === "missed",
  score: (value) => value.trim() !== "" && Number.isFinite(Number(value)),
  list: (value) => Object.hasOwn(LISTS, value),
  order: (value) => Object.hasOwn(ORDERS, value),
};

function readFragment() {
  const text = location.hash.slice(1);
  if (text && !text.includes("=")) return false;  // a plain anchor is no state
  const given = new URLSearchParams(text);
  for (const key of Object.keys(DEFAULTS)) {
    const value = given.get(key) ?? DEFAULTS[key];
    state[key] = value === DEFAULTS[key] || VALID[key]?.(value) !== false ? value : DEFAULTS[key];
  }
  return true;
}

function writeFragment() {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) if (value !== DEFAULTS[key]) params.set(key, value);
  const text = params.toString();
  if (text !== location.hash.slice(1)) {
    history.replaceState(null, "", text ? `#${text}` : location.href.split("#")[0]);
  }
}

const sections = [];
let later = 0, settled = 0;

function set(change) {
  const changed = new Set(Object.keys(change).filter((key) => state[key] !== change[key]));
  if (!changed.size) return;
  Object.assign(state, change);
  show(changed);
  // A dragged slider changes the state often, and browsers limit how often addresses may change.
  clearTimeout(later);
  later = setTimeout(writeFragment, 150);
}

// Add a word to a list in the state, or remove it.
function flip(key, word, gap) {
  const words = new Set(state[key].split(gap).filter(Boolean));
  if (!words.delete(word)) words.add(word);
  set({ [key]: [...words].join(gap) });
}

function show(changed) {
  const due = sections.filter(([keys]) => !changed || keys.some((key) => changed.has(key)));
  const onlyScore = changed && changed.size === 1 && changed.has("score");
  for (const [, update, patient] of due) if (!onlyScore || !patient) update(changed);
  if (!onlyScore) return;
  clearTimeout(settled);
  settled = setTimeout(() => { for (const [, update, patient] of due) if (patient) update(changed); }, 120);
}

// Patient sections wait until the slider rests.
const section = (keys, update, patient = false) => sections.push([keys, update, patient]);

const chosenClass = () => state.class === "" ? -1 : classes.indexOf(state.class);
