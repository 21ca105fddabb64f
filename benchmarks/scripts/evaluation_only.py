"""Time the evaluation of tables read before, for several numbers of threads.

    evaluation_only.py FORMAT GROUND_TRUTH DETECTIONS THREADS[,THREADS...] RUNS

prints the median seconds for each number of threads as a JSON object.
"""

import json
import sys
from statistics import median
from time import perf_counter

from detap.evaluation.detection import evaluate
from detap.formats import read_detections, read_ground_truth


def main(words):
    file_format, truth_path, detection_path, threads, runs = words
    truth = read_ground_truth(truth_path, format=file_format)
    detections = read_detections(detection_path, truth, format=file_format)
    protocol = "coco" if file_format == "coco" else "voc2012"
    times = {count: [] for count in threads.split(",")}
    for _ in range(int(runs)):
        for count, taken in times.items():  # in turn, so that drift meets all alike
            start = perf_counter()
            evaluate(truth, detections, protocol, threads=int(count))
            taken.append(perf_counter() - start)
    print(json.dumps({count: median(taken) for count, taken in times.items()}))


main(sys.argv[1:])
