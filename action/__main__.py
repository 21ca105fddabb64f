"""Run a step of the action: ``python -I action install``, ``evaluate`` or ``comment``.

Every step starts Python with -I: the working directory is the evaluated repository, from which
Python would import ``json.py`` or ``detap/`` otherwise.
"""

import sys
from importlib import import_module

sys.exit(import_module(sys.argv[1]).main())
