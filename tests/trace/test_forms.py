"""A timeline as trace events, as a picture, and as a page: its structure here, its looks and keys in a browser where there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from oxidecopy.errors import UsageError
from oxidecopy.trace import Trace, trace
from oxidecopy.trace.picture import CTAS_MAX
from tests.helpers.timelines import computation

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="module")
def made() -> Trace:
    return trace(computation(3, ctas=2))


# ---- what may be asked for
def test_ctas_by_number_or_by_name(made: Trace) -> None:
    assert [t.name for t in made.timeline.tracks] == ["CTA 0", "CTA 1"]
    assert [t.name for t in trace(computation(3, ctas=2), ctas=[(1, 0, 0)]).timeline.tracks] == ["CTA 1"]


@pytest.mark.parametrize("ctas", [[(2, 0, 0)], [(0, 0, 0), (0, 1, 0)], [(-1, 0, 0)], [], 0])
def test_no_such_cta(ctas: Any) -> None:
    with pytest.raises(UsageError) as caught:
        trace(computation(3, ctas=2), ctas=ctas)
    assert caught.value.rule == "OX6051"


def test_only_the_simulator_follows_chosen_ctas(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = computation(3, ctas=2)
    monkeypatch.setattr(type(launch), "engine", type("Cuda", (), {"name": "cuda:0"})())
    with pytest.raises(UsageError) as caught:
        trace(launch, ctas=[(0, 0, 0)])
    assert caught.value.rule == "OX6052"


# ---- trace events
def test_trace_events_nest_and_point_to_what_is_there(made: Trace) -> None:
    document = json.loads(made.chrome())
    events = document["traceEvents"]
    assert document["otherData"]["stalls"] == made.summary.lines
    slices: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for event in events:
        if event["ph"] == "X":
            slices.setdefault((event["pid"], event["tid"]), []).append(event)
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert set(slices) == named
    for row in slices.values():
        assert all(a["ts"] + a["dur"] <= b["ts"] + 1e-6 for a, b in pairwise(sorted(row, key=lambda e: e["ts"])))
    starts = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
    ends = {e["id"]: e["ts"] for e in events if e["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert len(starts) > 20
    assert all(starts[i] <= ends[i] for i in starts)


# ---- pictures
def test_pictures(made: Trace) -> None:
    svg = made.svg()
    assert svg.startswith("<svg")
    assert "doubled, grid 2, 96 threads" in svg
    assert "consumers, threads 1-63" in svg
    many = trace(computation(2, ctas=6), ctas=6)
    assert f"and {6 - CTAS_MAX} CTAs more" in many.svg()
    assert len(many.svg()) < 600_000


# ---- the page
def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    parsed: dict[str, Any] = json.loads(found[1])
    return parsed


def test_a_page_stands_alone(made: Trace) -> None:
    page = made.html()
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)=|https?:|@import|url\(", page)
    data = data_of(page)
    assert data["summary"] == made.summary.lines
    assert [len(lane["spans"]) for track in data["tracks"] for lane in track["lanes"]] == [
        len(lane.spans) for track in made.timeline.tracks for lane in track.lanes
    ]
    assert all(0 <= span[5] < len(data["strings"]) for track in data["tracks"] for lane in track["lanes"] for span in lane["spans"])


def test_names_of_the_users_cannot_leave_their_place(made: Trace) -> None:
    from dataclasses import replace

    evil = "</script><script>alert(1)</script>"
    page = replace(made, timeline=replace(made.timeline, title=evil)).html()
    assert evil not in page
    assert data_of(page)["title"] == evil


DRIVE = """<script>
const press = (key, times = 1) => { while (times--) dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })); };
const pixels = () => { frame(); const c = chart.getContext("2d").getImageData(0, 0, chart.width, chart.height).data;
  const seen = new Set(); for (let i = 0; i < c.length; i += 4) seen.add(c[i] << 16 | c[i + 1] << 8 | c[i + 2]); return seen.size; };
const out = { ready: document.documentElement.dataset.ready, colours: pixels(), paper: colours.paper };
out.all = to - from; press("+", 3); out.zoomed = to - from;
const left = from; press("ArrowRight"); out.moved = from - left; press("0"); out.fit = to - from;
for (let i = 0; i < 30 && !(chart.dataset.selected || "").startsWith("wait for"); i++) press("n");
out.selected = chart.dataset.selected; out.shown = document.getElementById("detail").textContent;
press("c"); out.cause = chart.dataset.selected; press("Escape"); out.none = chart.dataset.selected;
press("t"); out.other = colours.paper; out.stillDrawn = pixels();
out.overflow = document.documentElement.scrollWidth > innerWidth;
const result = document.createElement("pre"); result.id = "result"; result.textContent = JSON.stringify(out); document.body.append(result);
</script>"""


@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="no Chromium here (Debian: apt-get install chromium)")
def test_in_a_browser_it_draws_zooms_and_answers_keys(made: Trace, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(made.html() + DRIVE, encoding="utf-8")
    browser = next(path for path in map(shutil.which, BROWSERS) if path)
    options = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=1400,900",
        "--dump-dom",
    )
    dom = subprocess.run([browser, *options, page.as_uri()], capture_output=True, text=True, timeout=60, check=True).stdout
    found = re.search(r'<pre id="result">(.*?)</pre>', dom)
    assert found is not None, dom[-2000:]
    out = json.loads(found[1])
    lanes = sum(len(track.lanes) for track in made.timeline.tracks)
    ops = sum(len(lane.spans) for track in made.timeline.tracks for lane in track.lanes)
    copies = sum(len(track.transfers) for track in made.timeline.tracks)
    assert re.fullmatch(rf"\d+ rows, {ops} ops, {copies} copies", out["ready"])
    assert int(out["ready"].split()[0]) > lanes
    assert out["colours"] > 12
    assert out["zoomed"] == pytest.approx(out["all"] * 0.6**3)
    assert out["moved"] > 0
    assert out["fit"] == pytest.approx(out["all"])
    assert out["selected"] == "wait for ring0_full[0], phase 0"
    assert "let go by: load src[0, 0] to ring0_src[0]" in out["shown"]
    assert out["cause"] == "load src[0, 0] to ring0_src[0]"
    assert out["none"] == ""
    assert {out["paper"], out["other"]} == {"#ffffff", "#14171c"}
    assert out["stillDrawn"] > 12
    assert not out["overflow"]
