"""Many independent jobs on many cores, with progress, and with results that survive a stop.

Jobs go through joblib, so its backends work here too: `with parallel_config(backend="dask")`
around a sweep sends it to a cluster. Results arrive as they are done and are kept by the one
process that waits for them, each in a file of its own, so that a sweep that was stopped goes on
where it was.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

__all__ = ["describe", "run_jobs"]

Row = dict[str, Any]


def run_jobs(
    work: Callable[..., list[Row]],
    jobs: Sequence[Mapping[str, Any]],
    *,
    n_jobs: int = 1,
    keep: str | Path | None = None,
    progress: bool = False,
    label: str = "jobs",
) -> list[list[Row]]:
    """Call `work(**job)` for every job.

    Args:
        work: a function of a module (it is sent to other processes); gives rows of plain numbers
            and strings.
        jobs: keyword arguments of each call.
        n_jobs: processes; -1 = as many as there are cores. The results do not depend on it.
        keep: a folder for results. What it has already is not worked out again, unless the code
            of the simulator has changed since.
        progress: show a bar on stderr.
        label: what the bar counts.

    Returns:
        The rows of every job, in the order of `jobs`.
    """
    from joblib import Parallel, delayed

    store = None if keep is None else Store(Path(keep), work)
    results: dict[int, list[Row]] = {}
    if store is not None:
        for place, job in enumerate(jobs):
            kept = store.load(job)
            if kept is not None:
                results[place] = kept
    missing = [place for place in range(len(jobs)) if place not in results]
    # Unordered: a job that is done is kept at once, even if an earlier one still runs.
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    done: Iterable[tuple[int, list[Row]]] = parallel(
        delayed(_numbered)(place, work, jobs[place]) for place in missing
    )
    if progress:
        from tqdm import tqdm

        done = tqdm(done, total=len(jobs), initial=len(results), desc=label, unit="job")
    for place, rows in done:
        if store is not None:
            store.save(jobs[place], rows)
        results[place] = rows
    return [results[place] for place in range(len(jobs))]


def _numbered(
    place: int, work: Callable[..., list[Row]], job: Mapping[str, Any]
) -> tuple[int, list[Row]]:
    return place, work(**job)


class Store:
    """A folder with one JSON file for each finished job, named by what the job was."""

    def __init__(self, folder: Path, work: Callable[..., Any]) -> None:
        self.folder, self.work = folder, work
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, job: Mapping[str, Any]) -> Path:
        """Where the result of this job is or will be."""
        text = f"{describe(self.work)}({describe(job)}) {code_version()}"
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"

    def load(self, job: Mapping[str, Any]) -> list[Row] | None:
        """The kept rows, or None."""
        try:
            kept: list[Row] = json.loads(self.path(job).read_text(encoding="utf-8"))["rows"]
        except FileNotFoundError:
            return None
        return kept

    def save(self, job: Mapping[str, Any], rows: list[Row]) -> None:
        """Keep the rows, all or nothing: a stop in the middle leaves no half file behind."""
        path = self.path(job)
        draft = path.with_suffix(f".{os.getpid()}.draft")
        draft.write_text(json.dumps({"job": describe(job), "rows": rows}), encoding="utf-8")
        os.replace(draft, path)


def describe(value: Any) -> str:
    """What a value is, in words that are the same in every process.

    Unlike `repr`, without addresses: functions and classes are named by module, name and source,
    and functions also by what they were given when they were made.
    """
    if is_dataclass(value) and not isinstance(value, type):
        inside = ", ".join(f"{f.name}={describe(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__qualname__}({inside})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{describe(k)}: {describe(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(describe, value))) + "}"
    if isinstance(value, (list, tuple, range)):
        return "[" + ", ".join(map(describe, value)) + "]"
    if isinstance(value, partial):
        return (
            f"partial({describe(value.func)}, {describe(value.args)}, {describe(value.keywords)})"
        )
    if inspect.ismodule(value):
        return value.__name__
    if inspect.ismethod(value):
        return f"{describe(value.__self__)}.{describe(value.__func__)}"
    if inspect.isfunction(value):
        made_with = [value.__defaults__, value.__kwdefaults__]
        made_with += [cell.cell_contents for cell in value.__closure__ or ()]
        return f"{_named(value)}{describe(made_with)}"
    if isinstance(value, type):
        return _named(value)
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return repr(value)
    return f"{_named(type(value))}({describe(getattr(value, '__dict__', {}))})"


def _named(value: Any) -> str:
    try:
        source = inspect.getsource(value)
    except (OSError, TypeError):  # typed in, or not written in Python
        code = getattr(value, "__code__", None)
        source = "" if code is None else f"{code.co_code!r}{code.co_names}"
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    return f"{value.__module__}.{value.__qualname__}#{digest}"


@lru_cache(maxsize=1)
def code_version() -> str:
    """A digest of the simulator's source: results of other code are not reused."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    paths = [
        path for part in ("service", "world", "experiments") for path in (root / part).rglob("*")
    ]
    for path in sorted(path for path in paths if path.suffix in (".py", ".sql")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
