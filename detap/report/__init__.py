"""Results as reports: rows of numbers, and one small sink for each format.

`rows` makes a :class:`~detap.report.model.Report` of a result; `sinks` knows the formats; each is
a module of its own. `writing` brings a report onto the disk.
"""
