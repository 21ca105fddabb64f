"""Score the predictions.json of an Ultralytics validation.

    python ultralytics_json.py yolo11n.pt data.yaml

``save_json`` numbers the classes of your own data from 1, so their names are given in order. Images
have the names of their files. The ground truth is the data set of YOLO.
"""

import sys

import detap


def score(model: object, data: str, **options: object) -> detap.Result:
    """Validate a model and score its predictions."""
    metrics = model.val(data=data, save_json=True, **options)
    names = metrics.save_dir / "names.txt"
    names.write_text("".join(f"{name}\n" for name in metrics.names.values()), "utf-8")
    truth = detap.read_ground_truth(data, split="val")
    predictions = str(metrics.save_dir / "predictions.json")
    detections = detap.read_detections(
        predictions, truth, class_names=str(names), first_category_id=1
    )
    return detap.evaluate(truth, detections, "coco")


if __name__ == "__main__":
    from ultralytics import YOLO

    print(score(YOLO(sys.argv[1]), sys.argv[2]))
