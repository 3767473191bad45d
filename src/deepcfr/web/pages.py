"""Pages from templates, which escape everything that they are given."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

HERE = Path(__file__).parent
STATIC = HERE / "static"


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
    return environment


@cache
def static(name: str) -> str:
    """The address of a file in `static`, which changes with its content, so that browsers may keep it."""
    digest = hashlib.blake2b((STATIC / name).read_bytes(), digest_size=6).hexdigest()
    return f"/static/{name}?{digest}"


def render(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page of `templates` filled with `values`."""
    return HTMLResponse(_environment().get_template(template).render(status=status, **values), status)
