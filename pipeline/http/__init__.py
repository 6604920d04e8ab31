"""The guarded HTTP client: no private address, no endless answer."""

from pipeline.declare.extras import require

require("http", "the guarded HTTP client")
