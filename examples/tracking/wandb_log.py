"""Log each epoch, the curves and the report page to Weights & Biases.

WANDB_MODE=offline python examples/tracking/wandb_log.py
"""

import wandb

import detap

FOLDER = "fixtures/quickstart/coco"

truth = detap.read_ground_truth(f"{FOLDER}/instances.json")
with wandb.init(project="detector") as run:
    for results in ("results-worse.json", "results.json"):  # two epochs
        result = detap.evaluate(truth, f"{FOLDER}/{results}")
        run.log(result.metrics("val/", by_class=True))
    curves = {result.classes[curve.label]: curve for curve in result.curves()[::10]}  # IoU 0.5
    series = wandb.plot.line_series(
        xs=[curve.recall.tolist() for curve in curves.values()],
        ys=[curve.precision.tolist() for curve in curves.values()],
        keys=list(curves),
        title="precision-recall",
        xname="recall",
    )
    run.log({"val/curves": series})
    report = wandb.Artifact("report", type="report")
    with report.new_file("report.html", encoding="utf-8") as file:
        file.write(result.to_page())
    run.log_artifact(report)
