"""The few scripts that can be understood without running them: those that lead to another address."""

from __future__ import annotations

import re

_TARGET = r"""(?:\blocation(?:\.href)?\s*=\s*(["'])([^"'\\\n]{1,500})\1"""
_CALL = r"""|\blocation\.(?:replace|assign)\(\s*(["'])([^"'\\\n]{1,500})\3\s*\))"""
LOCATION = re.compile(_TARGET + _CALL)
# Nothing else in the script, so that it does so in any case.
LEADS_ON = re.compile(
    r"\s*(?:<!--\s*)?(?:(?:window|document|self|top|parent)\.)?" + _TARGET + _CALL + r"\s*;?\s*(?://)?(?:-->)?\s*"
)
