"""Log each epoch, the curves and the report page to MLflow.

MLFLOW_TRACKING_URI=file:mlruns python examples/tracking/mlflow_log.py
"""

import mlflow

import detap

FOLDER = "fixtures/quickstart/coco"

truth = detap.read_ground_truth(f"{FOLDER}/instances.json")
with mlflow.start_run():
    mlflow.log_param("protocol", "coco")
    for epoch, results in enumerate(("results-worse.json", "results.json")):
        result = detap.evaluate(truth, f"{FOLDER}/{results}", "coco")
        mlflow.log_metrics(result.metrics("val/", by_class=True), step=epoch)
    mlflow.log_text(result.to_page(), "report.html")
    mlflow.log_figure(result.plot("precision-recall").figure, "precision-recall.png")
