"""TensorFlow's CSV of boxes with a header; also of Roboflow and supervision."""
