"""CreateML: a JSON list of images, with boxes by their centers."""
