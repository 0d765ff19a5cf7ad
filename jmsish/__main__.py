"""`python -m jmsish` is the command `jmsish`."""

import sys

from jmsish.cli.main import main

sys.exit(main())
