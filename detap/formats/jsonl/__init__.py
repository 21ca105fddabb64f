"""JSON Lines as Hugging Face's datasets have them: an image a line, its boxes in lists."""
