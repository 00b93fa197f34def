"""The one style of all figures."""

from __future__ import annotations

from itertools import combinations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.experiments.style import (
    COLOURS,
    INK,
    PAPER,
    CourseFigure,
    band,
    caption,
    direct_label,
    intervals,
    looks,
    new_figure,
    percent,
    png,
)

# Machado, Oliveira and Fernandes (IEEE TVCG 15, 2009), severity 1.0, on linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])


def linear(colour: str) -> np.ndarray:
    """Undo the gamma of sRGB."""
    c = np.array(mpl.colors.to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear RGB."""
    xyz = TO_XYZ @ rgb / WHITE
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_any_two_colours_differ_in_grey() -> None:
    lightness = [lab(linear(colour))[0] for colour in COLOURS]
    assert min(abs(a - b) for a, b in combinations(lightness, 2)) >= 7


@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_stay_apart_for_the_colour_blind(kind: str) -> None:
    seen = [lab(np.clip(np.array(BLINDNESS[kind]) @ linear(colour), 0, 1)) for colour in COLOURS]
    # A difference of 20 in CIE76 is "at a glance"; 2.3 is just noticeable.
    assert min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)) >= 20


def test_every_series_has_a_colour_a_marker_and_a_dash_of_its_own() -> None:
    seven = list(looks("abcdefg").values())
    assert len({look.colour for look in seven}) == 7
    assert len({look.marker for look in seven}) == 7
    assert len({str(look.dash) for look in seven}) == 7


def test_more_series_than_colours_still_look_different() -> None:
    many = looks(map(str, range(40))).values()
    assert len({(look.colour, look.marker) for look in many}) == 40


def test_a_name_that_comes_twice_keeps_its_look() -> None:
    assert list(looks(["naive", "safe", "naive"])) == ["naive", "safe"]


def test_figures_leave_pyplot_and_the_readers_settings_alone() -> None:
    before = dict(mpl.rcParams)
    figure, axes = new_figure(title="t", xlabel="x", ylabel="y")
    axes.plot([0, 1], [0, 1], label="a")
    direct_label(axes)
    caption(figure, "A line.")
    png(figure)
    assert plt.get_fignums() == []
    assert dict(mpl.rcParams) == before


def make(ends: list[float]) -> tuple[CourseFigure, list[mpl.text.Annotation]]:
    figure, axes = new_figure(title="title", xlabel="x (s)", ylabel="y (1/s)")
    for (name, look), end in zip(
        looks(f"design {n}" for n in range(len(ends))).items(), ends, strict=True
    ):
        axes.plot([0, 1, 2], [0.5, 0.2, end], label=name, **look.line())
        intervals(axes, [0, 1], [0.4, 0.1], [0.6, 0.3], look)
    axes.set_ylim(0, 1)
    return figure, direct_label(axes)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_labels_at_the_lines_ends_meet_neither_each_other_nor_the_edge(ends: list[float]) -> None:
    figure, labels = make(ends)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    # Of the words alone: an annotation's own extent contains its rule.
    boxes = [mpl.text.Text.get_window_extent(label, renderer) for label in labels]
    for box in boxes:
        assert box.x1 <= figure.bbox.width
        assert box.y0 >= 0
        assert box.y1 <= figure.bbox.height
    for one, other in combinations(boxes, 2):
        assert one.y1 <= other.y0 + 1 or other.y1 <= one.y0 + 1


def test_labels_stand_in_the_order_of_the_lines_ends() -> None:
    _, labels = make([0.30, 0.90, 0.31, 0.10])
    assert [label.get_text() for label in labels] == [
        "design 3",
        "design 0",
        "design 2",
        "design 1",
    ]


def test_more_labels_than_fit_grow_out_of_the_axes_on_both_sides_alike() -> None:
    figure, labels = make([0.1] * 30)
    axes = figure.axes[0]
    heights = [label.get_position()[1] for label in labels]  # in fractions of the axes
    assert (heights[0] + heights[-1]) / 2 == pytest.approx(0.5)
    assert heights[0] < 0
    assert axes.get_ylim() == (0, 1)


def test_a_label_for_every_line_or_a_sentence() -> None:
    _, axes = new_figure()
    axes.plot([0, 1], [0, 1], label="a")
    with pytest.raises(ValueError, match="1 lines but 2 labels"):
        direct_label(axes, labels=["a", "b"])


def test_a_line_that_ends_in_nothing_is_labelled_where_it_ends() -> None:
    _, axes = new_figure()
    axes.plot([0, 1, 2], [0.0, 1.0, float("nan")], label="a")
    axes.plot([0, 1], [float("nan")] * 2, label="nothing at all")
    (label,) = direct_label(axes)
    assert (label.get_text(), label.xy) == ("a", (1.0, 1.0))


def test_equal_figures_give_equal_bytes() -> None:
    assert png(make([0.2, 0.8])[0]) == png(make([0.2, 0.8])[0])


def test_a_figure_says_in_words_what_it_shows() -> None:
    figure, _ = new_figure()
    assert repr(figure) == "<figure with 1 axes>"
    sentence = "With 20 % of the answers lost, $500 became $1,000 in one refund of five."
    assert caption(figure, sentence) == sentence
    assert repr(figure) == str(figure) == sentence
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_long_caption_stays_on_the_canvas() -> None:
    figure, _ = new_figure(8, 5)
    caption(figure, "Wide words, WWW and MMM, stay where readers can see them. " * 6)
    figure.canvas.draw()
    box = figure._supxlabel.get_window_extent(figure.canvas.get_renderer())
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert box.y0 >= 0


def test_dollars_are_money_and_no_formula() -> None:
    figure, axes = new_figure(title="$500 and $1,000", xlabel="$a$", ylabel="$b$")
    axes.plot([0, 1], [0, 1], label="$c$")
    (label,) = direct_label(axes)
    caption(figure, "$500 became $1,000.")
    texts = [
        axes.xaxis.label,
        axes.yaxis.label,
        label,
        figure._supxlabel,
        *(t for t in axes.get_children() if getattr(t, "get_text", str)() == "$500 and $1,000"),
    ]
    assert len(texts) == 5
    assert not any(text.get_parse_math() for text in texts)


def test_text_is_dark_on_white() -> None:
    def luminance(colour: str) -> float:
        return float(TO_XYZ[1] @ linear(colour))

    # WCAG 2.2, level AAA: a contrast of 7 to 1.
    assert (luminance(PAPER) + 0.05) / (luminance(INK) + 0.05) >= 7
    _, labels = make([0.1, 0.3, 0.5, 0.7, 0.9])
    for label in labels:
        # Level AA for large or bold type: 3 to 1.
        assert (1.05) / (luminance(label.get_color()) + 0.05) >= 3


def test_intervals_and_bands_are_drawn_where_the_data_says() -> None:
    _, axes = new_figure()
    look = looks(["a"])["a"]
    intervals(axes, [1, 2], [0.1, 0.2], [0.3, 0.6], look)
    (stems,) = axes.collections
    assert [s.tolist() for s in stems.get_segments()] == [
        [[1, 0.1], [1, 0.3]],
        [[2, 0.2], [2, 0.6]],
    ]
    assert [line.get_ydata().tolist() for line in axes.lines] == [[0.1, 0.2], [0.3, 0.6]]
    band(axes, [1, 2], [0.1, 0.2], [0.3, 0.6], look)
    assert len(axes.lines) == 4  # its edges survive a printer without colour


def test_shares_are_written_in_per_cent() -> None:
    _, axes = new_figure()
    percent(axes.yaxis, digits=1)
    assert axes.yaxis.get_major_formatter()(0.125) == "12.5 %"


def test_several_axes_share_title_and_labels() -> None:
    _, grid = new_figure(
        rows=2, columns=1, title="t", xlabel="time (s)", ylabel="calls", sharex=True
    )
    assert grid.shape == (2, 1)
    assert grid[0, 0].get_title(loc="left") == "t"
    assert [axes.get_xlabel() for axes in grid[:, 0]] == ["", "time (s)"]
    assert [axes.get_ylabel() for axes in grid[:, 0]] == ["calls", "calls"]
