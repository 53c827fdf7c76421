# SPDX-License-Identifier: MIT
"""kymo view --beside: two traces in one window, on one time axis."""

import gzip
import json

import pytest

import make_trace
from test_view import Viewer, browser  # noqa: F401 (a fixture)

FRAME = "document.querySelectorAll('iframe')[%d].contentWindow"
VIEW = "(w => new URLSearchParams(w.location.hash.slice(1)))(" + FRAME + ").get('%s')"


@pytest.fixture
def pair(kymo_bin, reference, tmp_path):
    other = make_trace.sample(tmp_path / "trace", packets=3, per_packet=20)
    viewer = Viewer(kymo_bin, "--no-browser", "--beside", other, reference, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    yield viewer
    viewer.end()


def info_of(viewer, side):
    return json.loads(viewer.ask(f"/{viewer.token}/{side}/api/info")[2])


def test_each_side_has_its_answers(pair, view_alone):
    first, second = info_of(pair, "a"), info_of(pair, "b")
    assert first["begin"] != second["begin"] and first["traces"][0]["path"] != second["traces"][0]["path"]
    assert b"iframe" in gzip.decompress(pair.ask(f"/{pair.token}/")[2])
    for path in ("c/api/info", "a", "aa/api/info", "a/b/api/info", "a/../api/info"):
        assert pair.ask(f"/{pair.token}/{path}")[0] == 404, path
    # A page with one set of traces has no sides.
    assert view_alone.ask(f"/{view_alone.token}/a/api/info")[0] == 404
    for name in ("Content-Security-Policy", "X-Frame-Options"):
        value = pair.ask(f"/{pair.token}/a/")[1][name]
        assert "frame-ancestors 'self'" in value or value == "SAMEORIGIN"


def test_several_traces_beside(kymo_bin, kymo, reference, tmp_path):
    """--beside again: these traces are shown together."""
    others = [make_trace.sample(tmp_path / name, packets=2, per_packet=10) for name in ("one", "two")]
    for file in others[1].iterdir():  # traces with the same UUID are one
        data = file.read_bytes().replace(make_trace.UUID_TEXT.encode(), make_trace.UUID_TEXT.replace("10", "20", 1).encode())
        file.write_bytes(data.replace(bytes.fromhex(make_trace.UUID_TEXT.replace("-", "")), b"\x20" + bytes.fromhex(
            make_trace.UUID_TEXT.replace("-", ""))[1:]))
    words = [word for other in others for word in ("--beside", other)]
    viewer = Viewer(kymo_bin, "--no-browser", *words, reference, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    try:
        first, second = info_of(viewer, "a"), info_of(viewer, "b")
        assert [trace["path"] for trace in first["traces"]] == [str(reference)]
        assert [trace["path"] for trace in second["traces"]] == [str(other) for other in others]
        assert json.loads(viewer.ask(f"/{viewer.token}/b/api/notes")[2])["notes"] == []
    finally:
        viewer.end()
    assert "--lami" in kymo("view", "--lami", "x", *words, reference, code=2).err


@pytest.fixture
def view_alone(kymo_bin, reference, tmp_path):
    viewer = Viewer(kymo_bin, "--no-browser", reference, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    yield viewer
    viewer.end()


def key(browser, side, name):
    """In the page of a frame."""
    browser.value(f"{FRAME % side}.document.body.dispatchEvent(new (({FRAME % side}).KeyboardEvent)('keydown', "
                  f"{{key: {name!r}, bubbles: true}}))")


def shown(browser, side):
    """The view of a frame."""
    browser.until(VIEW % (side, "b"))
    return int(browser.value(VIEW % (side, "b"))), int(browser.value(VIEW % (side, "e")))


def same_times(browser, origins):
    """Both frames show the same times, counted from their origins."""
    browser.until(f"(({VIEW % (0, 'b')}) && ({VIEW % (1, 'b')}) && BigInt({VIEW % (0, 'b')}) - {origins[0]}n === "
                  f"BigInt({VIEW % (1, 'b')}) - {origins[1]}n && BigInt({VIEW % (0, 'e')}) - {origins[0]}n === "
                  f"BigInt({VIEW % (1, 'e')}) - {origins[1]}n)")


def test_both_pages_show_the_same_times(browser, pair):
    first, second = info_of(pair, "a"), info_of(pair, "b")
    browser.go("about:blank")
    browser.trouble.clear()
    browser.go(pair.link)
    for side in (0, 1):
        browser.until(f"/^\\d+ events/.test({FRAME % side}.document.querySelector('#total')?.textContent ?? '')")
    origins = [first["begin"], second["begin"]]
    # Moves in the one are moves in the other.
    for side in (0, 1):
        before = browser.value(VIEW % (1 - side, "b"))
        for name in "wwd":
            key(browser, side, name)
        browser.until(f"{VIEW % (1 - side, 'b')} !== {before!r}" if before else VIEW % (1 - side, "b"))
        same_times(browser, origins)
    # Aligned at an event of each.
    for side in (0, 1):
        document = f"{FRAME % side}.document"
        browser.until(f"{document}.querySelectorAll('.body .line').length > 1 && "
                      f"{document}.querySelectorAll('.body .line')[1].children[1].textContent !== '…'")
        browser.value(f"{document}.querySelectorAll('.body .line')[1].click()")
        browser.until(VIEW % (side, "c"))
        origins[side] = int(browser.value(VIEW % (side, "c")))
        key(browser, side, "=")
        same_times(browser, origins)
    key(browser, 0, "s")
    same_times(browser, origins)
    begin, end = shown(browser, 0)
    assert begin < end
    assert [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"] == []
    browser.go("about:blank")


def test_command_checks_the_other_trace(kymo, reference, tmp_path):
    assert "--beside" in kymo("view", "--beside", reference, "--save", tmp_path / "x.html", reference, code=2).err
    assert "kymo:" in kymo("view", "--no-browser", "--beside", tmp_path / "none", reference, code=1).err
