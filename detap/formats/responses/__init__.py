"""Answers of vision-language models, which have boxes and no scores."""
