"""Spans, as a collector receives them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TRACE, SPAN = "a" * 32, "b" * 16
PROGRAM = f"""
from pipeline.observe.instruments import phase_span
with phase_span("website.page", "00-{TRACE}-{SPAN}-01", job="j1", attempt=2) as outgoing:
    print(outgoing)
try:
    with phase_span("website.page", "00-{TRACE}-{SPAN}-01"):
        raise ValueError("the customer's secret")
except ValueError:
    pass
import sys
print("opentelemetry" in sys.modules)
"""


class Collector(BaseHTTPRequestHandler):
    received: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        self.received.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments: object) -> None: ...


def run(**environment: str) -> list[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**plain, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.split()


def test_a_phases_span_is_a_child_of_the_callers_trace() -> None:
    """Outgoing calls carry the span's own id; an error tells its kind and nothing of its words."""
    Collector.received.clear()
    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        outgoing, _ = run(OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
    sent = [ExportTraceServiceRequest.FromString(body) for body in Collector.received]
    spans = [span for one in sent for r in one.resource_spans for s in r.scope_spans for span in s.spans]
    good, bad = sorted(spans, key=lambda span: span.status.code)
    assert {(span.trace_id.hex(), span.parent_span_id.hex(), span.name) for span in spans} == {
        (TRACE, SPAN, "website.page")
    }
    assert outgoing == f"00-{TRACE}-{good.span_id.hex()}-01"
    assert bad.status.message == "ValueError" and not any(b"secret" in body for body in Collector.received)


@pytest.mark.parametrize("setting", ["", None])
def test_without_an_endpoint_tracing_costs_nothing(setting: str | None) -> None:
    """OpenTelemetry is not even imported."""
    assert run(**({} if setting is None else {"OTEL_EXPORTER_OTLP_ENDPOINT": setting})) == ["None", "False"]
