"""What CVAT and LabelMe share: objects one by one, shapes that are no boxes, flags."""
