"""What each kind of broker does and does not do over AMQP 1.0, as frozen values, and how one is recognised.

`PROFILES` has one `Profile` per kind of broker; `recognise` finds the one that fits what a peer said in its open.
"""

from jmsish.profiles.profile import Profile
from jmsish.profiles.recognise import missing_at, recognise, version_of
from jmsish.profiles.table import NAMES, PROFILES, UNKNOWN

__all__ = ["NAMES", "PROFILES", "UNKNOWN", "Profile", "missing_at", "recognise", "version_of"]
