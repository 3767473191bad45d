"""Render pages from templates, which escape all values."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from deepcfr.report import run_report
from deepcfr.search.spot_sizes import amount_text

HERE = Path(__file__).parent
STATIC = (HERE / "static", run_report.STATIC)  # the latter: styles that a report carries as well


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["static"] = static
    environment.filters["amount"] = amount_text
    return environment


@cache
def static(name: str) -> str:
    """The address of a static file; it changes with the content, so browsers may cache the file."""
    path = next(folder / name for folder in STATIC if (folder / name).is_file())
    digest = hashlib.blake2b(path.read_bytes(), digest_size=6).hexdigest()
    return f"/static/{name}?{digest}"


def render(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page of `templates` filled with `values`."""
    return HTMLResponse(_environment().get_template(template).render(status=status, **values), status)
