// Labels of error types and results.
const LABELS = {
  "classification": "Classification", "localization": "Localization", "both": "Both",
  "duplicate": "Duplicate", "background": "Background", "missed": "Missed (TIDE)",
  "false_positives": "All FP", "false_negatives": "All FN",
  "true-positive": "True positive", "ignored": "Ignored", "outside-area-range": "Outside the area range",
  "not-exhaustive": "Class not exhaustively annotated", "unverified": "Class not verified", "zero-area": "Zero area",
  "beyond-max-dets": "Beyond max dets", "matched": "Matched", "near-miss": "Near miss",
};
const inSentence = (name) => LABELS[name][0].toLowerCase() + LABELS[name].slice(1);
const DESCRIPTIONS = {
  "classification": "well localized, wrong class",
  "localization": "correct class, poorly localized",
  "both": "overlaps another class, poorly localized",
  "duplicate": "ground truth is already matched",
  "background": "IoU below 0.1 with every ground truth",
  "missed": "ground truth without a matching or near-miss detection",
  "false_positives": "all false positives removed",
  "false_negatives": "all unmatched ground truths removed",
};
const ERROR_TYPES = ["classification", "localization", "both", "duplicate", "background"];
