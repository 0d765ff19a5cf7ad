"""``python -m tests.fuzz.guided TARGET [SECONDS]``: a parser fed by atheris, which looks at what each input reaches.

atheris is installed for this alone (``pip install atheris``); it is no dependency of the suite.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    """Never returns: libFuzzer ends the process, with a status that says whether it found something."""
    import atheris

    with atheris.instrument_imports(include=["jmsish"]):
        from tests.fuzz.blind import SLOW, corpus_of
        from tests.fuzz.parsers import TARGETS

    name, seconds = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "60"
    folder = Path(os.environ.get("JMSISH_FUZZ_CORPUS", "/tmp/jmsish-fuzz")) / name
    folder.mkdir(parents=True, exist_ok=True)
    for number, octets in enumerate(corpus_of(name)):
        (folder / f"seed-{number}").write_bytes(octets)
    options = [f"-max_total_time={seconds}", "-max_len=2000", f"-timeout={int(SLOW * 10)}", "-print_final_stats=1",
               f"-artifact_prefix={folder}-found-"]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(folder)], TARGETS[name].run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
