"""`python -m tests.provider [--port 0]`: prints the URL on one line and serves until it is terminated."""

from __future__ import annotations

import argparse

from tests.provider.server import Provider


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.provider", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    provider = Provider(port=parser.parse_args().port)
    print(provider.url, flush=True)
    try:
        provider.serve_forever()
    except KeyboardInterrupt:
        provider.server_close()


if __name__ == "__main__":
    main()
