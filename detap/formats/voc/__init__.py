"""PASCAL VOC: folders of XML, and the detections that go with them."""
