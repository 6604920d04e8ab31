"""``python -m sandbox --port 8099``: serve until interrupted."""

from __future__ import annotations

import argparse

from sandbox.server import serve


def main() -> None:
    """Read the address from the command line and serve there."""
    parser = argparse.ArgumentParser(prog="sandbox", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: loopback only)")
    parser.add_argument("--port", type=int, default=8099, help="port to listen on; 0 picks a free one")
    arguments = parser.parse_args()
    serve(arguments.host, arguments.port)


if __name__ == "__main__":
    main()
