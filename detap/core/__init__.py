"""Arrays in, arrays out: overlap, matching, curves.

Nothing here knows a file, the name of a class, or a protocol. What is hot is compiled (the modules
whose names begin with an underscore) and runs without the GIL; beside each stands the plain module
that documents it.
"""
