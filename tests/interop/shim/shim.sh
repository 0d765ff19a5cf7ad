#!/bin/sh
# JMSISH_PYTHON is a Python that has jmsish, where python3 is not one.
exec "${JMSISH_PYTHON:-python3}" "$(dirname "$0")/shim.py" "$@"
