"""Fields of templates: the figure of a record, rounded as its page says."""

import pytest

from experiments import filled


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{a[x]:up2} {a[x]:down2} {a[x]:.1f}", "1,234.57 1,234.56 1234.6"),
        ("{a[x]:up/60} {a[x]:down1/-1}", "21 -1,234.6"),
        ("{a[rows][-1][t]} {a[rows][t=2,s=b][v]:up}", "2 4"),
        ("{a[rows]:<v:up1> at <t>}; {a[rows]:<s>}", "2.0 at 1, 3.5 at 2, 3.5 at 2; a, a, b"),
        ("{a[rows]:lines* <t> <s>}", "* 1 a\n* 2 a\n* 2 b"),
        ("{a[commit]:commit}", "0123456789, changed"),
    ],
)
def test_a_field_is_a_figure_of_a_record(template: str, text: str) -> None:
    rows = [{"t": 1, "s": "a", "v": 2.0}, {"t": 2, "s": "a", "v": 3.5}, {"t": 2, "s": "b", "v": 3.5}]
    records = {"a": {"x": 1234.5645, "rows": rows, "commit": "0123456789abc+changes"}}
    assert filled.Filler().vformat(template, (), records) == text


def test_a_field_that_no_record_has_is_refused() -> None:
    with pytest.raises(KeyError):
        filled.Filler().vformat("{a[y]}", (), {"a": {"x": 1}})
