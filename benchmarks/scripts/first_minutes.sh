#!/usr/bin/env bash
# Time the first minutes of a new user: clean clone, new environment, first table, gate and page.
#
#     bash benchmarks/scripts/first_minutes.sh
#
# Downloads are apart: what pip needs is fetched before its time is taken.
set -euo pipefail
checkout=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONDONTWRITEBYTECODE

timed() {
    local what=$1 start end status=0
    shift
    start=$(date +%s.%N)
    "$@" >"$work/out.txt" 2>&1 || status=$?
    end=$(date +%s.%N)
    printf '%-34s %6.1f s   status %d   %s\n' "$what" "$(awk "BEGIN {print $end - $start}")" "$status" "${*: -3:3}"
}

git clone --quiet "$checkout" "$work/detap"
cd "$work/detap"
timed "a fresh environment" python3 -m venv .venv
.venv/bin/pip install --quiet 'Cython>=3.1' 'setuptools>=77' wheel click lxml numpy pycocotools rich
.venv/bin/pip install --quiet 'Jinja2>=3.1' 'Pillow>=10'
timed "pip install . (downloads apart)" .venv/bin/pip install --quiet --no-build-isolation .
timed "the first table" .venv/bin/detap eval --gt fixtures/quickstart/voc --dt fixtures/quickstart/voc/detections
cat "$work/out.txt"
timed "the second table" .venv/bin/detap eval --gt fixtures/quickstart/voc --dt fixtures/quickstart/voc/detections
timed "the first gate (fails, status 1)" .venv/bin/detap eval --gt fixtures/quickstart/voc \
    --dt fixtures/quickstart/voc/detections-worse --baseline-detections fixtures/quickstart/voc/detections --max-drop 0.02
timed "the first page" .venv/bin/detap report --gt fixtures/quickstart/voc \
    --dt fixtures/quickstart/voc/detections-worse --baseline-detections fixtures/quickstart/voc/detections -o page.html
timed "detap demo" .venv/bin/detap demo tour
