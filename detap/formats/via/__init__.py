"""VGG Image Annotator (VIA) 1 and 2: JSON, project or CSV."""
