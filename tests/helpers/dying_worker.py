"""A worker of `oxidecopy.conformance.descriptors` that answers with the number of each set, and dies at every fourth without a word."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    _, _, file, first = sys.argv[1:]
    for number in range(int(first), len(json.loads(Path(file).read_text()))):
        if number % 4 == 3:
            os._exit(9)
        sys.stdout.write(f"noise\n> {number}\n")
        sys.stdout.flush()
