"""Pictures of the tables: every word is there, fits, and can be read without colour."""

from __future__ import annotations

from itertools import groupby, pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from simulator import Scenario, designs, faults
from simulator.experiments.ablation import ABLATIONS, Ablation, ablation_table
from simulator.experiments.crashes import (
    NOT_TAKEN,
    OUTCOMES,
    SETTINGS,
    Prepared,
    crash_grid,
    crash_table,
)
from simulator.experiments.style import CourseFigure, png
from simulator.experiments.table_plots import MEANINGS, SHADES, ablation_pictures, crash_picture

ONE, OUTAGE, STORM, CONSENT, OTHERS = (setting.name for setting in SETTINGS)


@pytest.fixture(scope="module")
def everywhere():
    return crash_table()


@pytest.fixture(scope="module")
def crashes(everywhere):
    return everywhere[everywhere["scenario"] == ONE]


@pytest.fixture(scope="module")
def ablations():
    return ablation_table(ABLATIONS)


def words(figure: CourseFigure) -> list[str]:
    """Every text on the page, by its place: from the top, then from the left."""
    texts = sorted(figure.axes[0].texts, key=lambda text: text.get_position()[::-1])
    return [text.get_text() for text in texts]


def light(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    channels = np.array(to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def assert_nothing_overlaps_or_leaves_the_page(figure: CourseFigure) -> None:
    figure.draw_without_rendering()
    page = figure.bbox
    boxes = [(text.get_window_extent(), text.get_text()) for text in figure.axes[0].texts]
    for box, text in boxes:
        assert page.x0 < box.x0 < box.x1 < page.x1, text
        assert page.y0 < box.y0 < box.y1 < page.y1, text
    for place, (box, text) in enumerate(boxes):
        for other, beside in boxes[:place]:
            # Lines of one paragraph touch by their ascenders; words beside each other must not.
            apart = (
                box.x1 < other.x0
                or other.x1 < box.x0
                or box.y1 < other.y0 + 3
                or other.y1 < box.y0 + 3
            )
            assert apart, (text, beside)


# --- crashes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", [ONE, OUTAGE, STORM, CONSENT, OTHERS])
@pytest.mark.parametrize("fault", ["crash", "pause"])
def test_every_cell_says_its_word(everywhere, fault: str, scenario: str) -> None:
    chosen = everywhere[(everywhere["fault"] == fault) & (everywhere["scenario"] == scenario)]
    grid = crash_grid(chosen)
    figure = crash_picture(everywhere, fault, scenario)
    said = " ".join(words(figure))
    for design in grid.columns:
        assert design.split("_")[0] in said
    for step in grid.index.get_level_values("step"):
        assert step in said
    cells = [tuple(row) for row in grid.itertuples()]
    joined = [key for key, _ in groupby((index[1], *row) for index, *row in cells)]
    joined.append((f"no {fault}", *chosen.drop_duplicates("design")["without"]))
    for word in ("doubled", "untold", "lost", "not allowed", "right", NOT_TAKEN):
        assert words(figure).count(word) == sum(row[1:].count(word) for row in joined), word


def test_a_cell_is_filled_for_every_word(crashes) -> None:
    figure = crash_picture(crashes)
    cells = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    inside = {}
    for text in figure.axes[0].texts:
        for cell in cells:
            x, y = text.get_position()
            if (
                cell.get_x() < x < cell.get_x() + cell.get_width()
                and cell.get_y() < y < cell.get_y() + cell.get_height()
            ):
                inside.setdefault(cell, []).append(text)
    assert len(inside) == len(cells)
    for cell, texts in inside.items():
        word = " ".join(text.get_text() for text in texts)
        assert to_rgb(SHADES[word].face) == cell.get_facecolor()[:3]
        assert all(text.get_color() == SHADES[word].ink for text in texts)


def test_the_first_row_is_the_history_without_the_crash(everywhere) -> None:
    for fault in ("crash", "pause"):
        said = words(crash_picture(everywhere, fault, OUTAGE))
        first = said.index(f"no {fault}")
        assert said[first + 1 : first + 11] == ["lost"] * 9 + ["right"]
        assert first < said.index("finish")


def test_under_the_title_stands_the_scenario_with_what_went_wrong_before(everywhere) -> None:
    assert words(crash_picture(everywhere))[1] == "one_refund"
    assert words(crash_picture(everywhere, "pause", CONSENT))[1] == "approval_between"
    assert words(crash_picture(everywhere, scenario=OUTAGE))[1] == (
        "one_refund, after claim: database down for 19 h 30 min and provider.refund: provider "
        "down for 4 h"
    )


def test_designs_that_take_no_step_are_left_out() -> None:
    down = Prepared(Scenario.one_refund(), (faults.database_down("claim", seconds=5.0),))
    said = words(crash_picture(crash_table([designs.NAIVE, designs.SAFE], down)))
    assert "SAFE" in said
    assert "NAIVE" not in said


def test_points_at_which_all_fare_alike_share_a_row(crashes) -> None:
    few = crashes[crashes["step"].isin(["begin", "provider.refund", "mark_told"])]
    said = words(crash_picture(few, "crash"))
    assert said.count("at any point") == 1  # mark_told
    assert said.count("before commit") == said.count("after commit") == 1  # begin
    assert said.count("before sending") == said.count("after sending or answer") == 1
    assert "after the answer" not in said  # provider.refund


def test_steps_that_no_design_takes_are_left_out() -> None:
    said = words(crash_picture(crash_table([designs.NAIVE], Scenario.one_refund())))
    assert "finish" in said
    assert "claim" not in said
    assert NOT_TAKEN not in said


@pytest.mark.parametrize("scenario", [ONE, OUTAGE, STORM, CONSENT, OTHERS])
@pytest.mark.parametrize("fault", ["crash", "pause"])
def test_no_word_of_a_crash_picture_overlaps_another_or_leaves_the_page(
    everywhere, fault, scenario
) -> None:
    assert_nothing_overlaps_or_leaves_the_page(crash_picture(everywhere, fault, scenario))


def test_a_picture_of_one_design_has_room_for_its_titles(everywhere) -> None:
    outbox = everywhere[everywhere["design"] == "OUTBOX"]
    for scenario in (ONE, OUTAGE):
        figure = crash_picture(outbox, scenario=scenario)
        assert_nothing_overlaps_or_leaves_the_page(figure)


def test_words_can_be_read_in_grey_and_graver_ones_are_darker() -> None:
    assert SHADES.keys() == {*OUTCOMES, NOT_TAKEN}
    assert SHADES.keys() - {"right", NOT_TAKEN} == MEANINGS.keys()
    for word in OUTCOMES:
        high, low = sorted((light(SHADES[word].face), light(SHADES[word].ink)), reverse=True)
        assert (high + 0.05) / (low + 0.05) > 7  # WCAG 2.2, level AAA
    shades = [light(face) for face, _ in groupby(SHADES[word].face for word in OUTCOMES)]
    assert len(shades) == 5
    assert all(graver + 0.1 < milder for graver, milder in pairwise(shades))


@pytest.mark.parametrize("fault", ["crash", "pause"])
def test_letters_are_large_for_the_height_of_the_page(everywhere, fault: str) -> None:
    for scenario in dict.fromkeys(everywhere["scenario"]):
        figure = crash_picture(everywhere, fault, scenario)
        height = 72 * figure.get_figheight()
        for text in figure.axes[0].texts:
            assert text.get_fontsize() / height > 0.018, (scenario, text.get_text())


def test_the_caption_counts_from_the_table(crashes) -> None:
    grid = crash_grid(crashes[crashes["fault"] == "crash"])
    taken = (grid["NAIVE"] != NOT_TAKEN).sum()
    wrong = taken - (grid["NAIVE"] == "right").sum()
    said = crash_picture(crashes).caption
    assert said.startswith("SAFE is right wherever it strikes. ")
    assert f"Most often wrong is NAIVE: at {wrong} of its {taken} points one crash" in said
    assert "doubled: paid more than once" in said.lower()
    assert "overpaid" not in said
    assert "-: not a step of this design" in said


def test_a_design_that_is_right_everywhere_is_not_called_wrong(crashes) -> None:
    table = crash_table([designs.SAFE], Scenario.one_refund())
    assert crash_picture(table).caption == "SAFE is right wherever it strikes."


def test_the_caption_blames_no_crash_for_what_is_wrong_without_it(everywhere) -> None:
    said = crash_picture(everywhere, scenario=CONSENT).caption
    assert said.startswith(
        "SAFE is right wherever it strikes. All others go wrong without it, too. Doubled: "
    )
    chosen = everywhere[everywhere["design"].isin(["NAIVE", "MEMORY_RECORD", "OUTBOX", "SAFE"])]
    storm = chosen[chosen["scenario"] == STORM].copy()
    assert "Most often wrong is NAIVE" in crash_picture(storm).caption
    assert "wrong without it" not in crash_picture(storm).caption
    storm.loc[storm["design"] == "NAIVE", "without"] = "stuck"
    assert "Most often wrong is MEMORY_RECORD" in crash_picture(storm).caption
    assert "NAIVE goes wrong without it, too." in crash_picture(storm).caption
    storm.loc[storm["design"] == "OUTBOX", "without"] = "untold"
    assert "NAIVE and OUTBOX go wrong without it, too." in crash_picture(storm).caption


def test_a_fault_that_is_not_in_the_table_is_refused(crashes) -> None:
    with pytest.raises(ValueError, match="no fault 'flood'; there are crash and pause"):
        crash_picture(crashes, "flood")
    with pytest.raises(ValueError, match="no scenario 'two_refunds'; there are one_refund"):
        crash_picture(crashes, scenario="two_refunds")


# --- ablations -------------------------------------------------------------------------------


def test_every_row_is_on_a_page_and_the_pages_are_of_equal_length(ablations) -> None:
    pages = ablation_pictures(ablations, rows=len(ablations) - 1)
    assert len(pages) == 2
    said = [words(page) for page in pages]
    half = -(-len(ablations) // 2)
    for page, rows in zip(said, (ablations[:half], ablations[half:]), strict=True):
        for row in rows.itertuples():
            assert row.safeguard in page
            assert {*row.breaks.split(", ")} <= {*page}
    assert "1 of 2" in said[0]
    assert "2 of 2" in said[1]


def test_no_word_of_an_ablation_picture_overlaps_another_or_leaves_the_page(ablations) -> None:
    for page in ablation_pictures(ablations):
        assert_nothing_overlaps_or_leaves_the_page(page)


def test_faults_are_said_in_words_with_their_step(ablations) -> None:
    said = " ".join(words(ablation_pictures(ablations, rows=99)[0]))
    assert "provider.refund: answer lost" in said
    assert "no fault at all" in said


def test_covered_rows_are_marked(ablations) -> None:
    covered = ablations[ablations["covered_by"] == "provider key"]
    (page,) = ablation_pictures(covered, rows=99)
    assert any(word.startswith("(covered by provider key; shown") for word in words(page))
    assert "Where another safeguard covers it" in page.caption
    alone = ablations[ablations["covered_by"] == ""]
    assert not any("covers" in page.caption for page in ablation_pictures(alone))


def test_a_row_that_is_not_as_expected_is_marked(ablations) -> None:
    wrong = ablations[:2].copy()
    wrong.loc[0, ["as_expected", "breaks", "expected"]] = [False, "", "stuck"]
    (page,) = ablation_pictures(wrong)
    said = words(page)
    assert "✗ expected: stuck" in said
    assert "nothing" in said
    assert page.caption.endswith("Not as expected: provider key.")
    assert not any("✗" in word for word in words(ablation_pictures(ablations[:2])[0]))


def test_a_cover_that_does_not_cover_is_marked() -> None:
    row = Ablation("provider key", "one_refund", ("lose_response",), "double_refund", ("lease",))
    (page,) = ablation_pictures(ablation_table([row]))
    assert "✗ not covered" in words(page)
    assert "double_refund" in words(page)


def test_an_empty_table_is_refused(ablations) -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        ablation_pictures(ablations[:0])


def test_pictures_are_equal_for_equal_tables_and_unknown_to_pyplot(crashes) -> None:
    before = plt.get_fignums()
    assert png(crash_picture(crashes), dpi=40) == png(crash_picture(crashes), dpi=40)
    assert plt.get_fignums() == before
