"""Open JupyterLab at the next lesson: `python -m simulator.lessons.lab [--no-browser] …`.

Whatever else is given is passed on to JupyterLab. The kernel is this environment's, the news
pop-up is off, and the root user (a container's) is let in.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from simulator.lessons.build import ROOT
from simulator.lessons.logbook import next_lesson

__all__ = ["command", "environment", "main"]

NOTEBOOKS = ROOT / "notebooks"
SETTINGS = Path(__file__).parent / "jupyter"
"""A folder of Jupyter settings that goes before the user's own."""


def command(options: Sequence[str] = (), notebooks: Path = NOTEBOOKS) -> list[str]:
    """The command that opens the lab at the next unfinished lesson of that folder."""
    made = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={notebooks}"]
    # Not the file as an argument: then the address that is printed would not lead to it.
    made.append(f"--LabApp.default_url=/lab/tree/{next_lesson().file}.ipynb")
    made.append("--ServerApp.answer_yes=True")  # else one Ctrl+C would only ask whether it is meant
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        made.append("--allow-root")
    return [*made, *options]


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The variables it runs with: our settings first, this environment's kernel first."""
    paths = [str(SETTINGS)]
    if given.get("JUPYTER_CONFIG_PATH"):
        paths.append(given["JUPYTER_CONFIG_PATH"])
    return {
        **given,
        "JUPYTER_CONFIG_PATH": os.pathsep.join(paths),
        "JUPYTER_PREFER_ENV_PATH": "1",
    }


def main(options: Sequence[str]) -> int:
    """Run the lab until it is closed; its exit code.

    On POSIX this process becomes the lab, so that whoever ends the one ends the other.
    """
    print(f"JupyterLab opens at lesson {next_lesson().number}. Ctrl+C here closes it.", flush=True)
    made, variables = command(options), environment(os.environ)
    if os.name == "posix":
        os.execve(made[0], made, variables)
    process = subprocess.Popen(made, env=variables)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # the lab had it too, and closes
            continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
