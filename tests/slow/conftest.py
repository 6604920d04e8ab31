"""The server and the browser of the tests of the dashboard."""

from __future__ import annotations

from tests.front.api.conftest import serve as serve
from tests.front.dashboard.conftest import browser as browser
from tests.front.dashboard.conftest import open_page as open_page
