"""PASCAL VOC: XML annotations, and text files of detections."""
