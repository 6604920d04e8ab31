"""The schedules, over HTTP."""

from pipeline.front.api.schedules.routes import router as router
