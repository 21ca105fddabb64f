"""JSON Lines as in Hugging Face datasets: one image per line, its boxes in lists."""
