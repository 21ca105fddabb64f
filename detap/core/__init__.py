"""Array kernels: IoU, matching, accumulation.

Inputs and outputs are arrays: no files, class names or protocols. Modules with a leading underscore
are compiled and run without the GIL; the plain module of the same name documents them.
"""
