"""Writers of COCO, VOC and YOLO files, one module per format."""
