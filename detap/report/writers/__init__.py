"""The forms a report is written in, a module each; `registry` knows them all."""
