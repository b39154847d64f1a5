"""The wake's data: the embedded harmonics, the classical file, its download, and damaged files."""

import hashlib
import http.server
import threading
import time
import tracemalloc

import numpy as np
import pytest
from scipy.io import savemat

from unpinn._errors import UserError
from unpinn.benchmarks import _wake
from unpinn.benchmarks._wake import (
    Wake,
    embedded_harmonics,
    fetch_wake,
    git_blob_identifier,
    load_wake,
    read_harmonics,
    temporal_basis,
    wake_is_cached,
)


@pytest.fixture(scope="module")
def wake() -> Wake:
    return load_wake()


def small_classical(seed: int = 0, shuffle: bool = False) -> dict[str, np.ndarray]:
    """A small file laid out like the classical one, with fields that tell where they belong."""
    x, y, t = np.linspace(1, 8, 5), np.linspace(-2, 2, 4), 0.1 * np.arange(3)
    places = np.array([(a, b) for b in y for a in x])
    if shuffle:
        np.random.default_rng(seed).shuffle(places)
    phase = places[:, :1] + 10 * places[:, 1:] + 100 * t
    return {
        "X_star": places,
        "t": t[:, None],
        "U_star": np.stack([phase, 2 * phase], axis=1),
        "p_star": 3 * phase,
    }


def small_harmonics() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {
        "x": np.linspace(1, 8, 5),
        "y": np.linspace(-2, 2, 4),
        "period": np.array(5.9),
        "harmonics": generator.normal(size=(5, 3, 4, 5)).astype(np.float32),
    }


def test_embedded_frames_have_the_specified_grid(wake):
    np.testing.assert_allclose(wake.x, np.linspace(1, 8, 100))
    np.testing.assert_allclose(wake.y, np.linspace(-2, 2, 50))
    np.testing.assert_allclose(wake.time, np.arange(200) / 10, atol=1e-12)
    for field in (wake.u, wake.v, wake.p):
        assert field.shape == (100, 50, 200)
        assert field.dtype == np.float64


def test_embedded_frames_have_the_specified_sizes(wake):
    # Over the 71 frames that the problem nsinv uses; the sizes come from a sample of readings.
    u, v, p = (field[:, :, :71] for field in (wake.u, wake.v, wake.p))
    for field, size in ((u, 0.908), (v, 0.275), (p, 0.130)):
        assert np.sqrt(np.mean(field**2)) == pytest.approx(size, abs=3e-3)
    assert p.std() == pytest.approx(0.102, abs=3e-3)


def test_embedded_frames_repeat_and_mirror_after_half_a_period():
    wake = embedded_harmonics()
    time = np.array([0.3, 2.0])
    np.testing.assert_allclose(wake.fields(time + wake.period), wake.fields(time), atol=1e-12)
    later = wake.fields(time + wake.period / 2)
    mirrored = wake.fields(time)[..., ::-1, :] * np.array([1, -1, 1])[:, None, None]
    np.testing.assert_allclose(later, mirrored, atol=1e-3)


def test_frames_are_the_harmonics_at_the_frame_times(wake):
    fields = embedded_harmonics().fields(wake.time[[7]])[0]
    for ours, theirs in zip((wake.u, wake.v, wake.p), fields, strict=True):
        np.testing.assert_allclose(ours[..., 7], theirs.T, atol=1e-12)


@pytest.mark.parametrize("derivative", [0, 1, 2])
def test_basis_derivative_is_the_derivative_of_the_basis(derivative):
    time, step = np.linspace(0, 5, 11), 1e-5
    ahead, behind = (temporal_basis(time + s, 5.9, 9, derivative) for s in (step, -step))
    exact = temporal_basis(time, 5.9, 9, derivative + 1)
    np.testing.assert_allclose((ahead - behind) / (2 * step), exact, atol=1e-5)


def test_loading_is_fast_and_small():
    tracemalloc.start()
    began = time.process_time()
    load_wake()
    duration = time.process_time() - began
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert duration < 2
    assert peak < 150e6


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("argument", ["path", "source"])
def test_classical_file_is_read_in_any_order_of_its_places(tmp_path, shuffle, argument):
    file = tmp_path / "wake.mat"
    savemat(file, small_classical(shuffle=shuffle))
    wake = load_wake(**{argument: str(file)})
    x, y, t = np.meshgrid(wake.x, wake.y, wake.time, indexing="ij")
    np.testing.assert_allclose(wake.u, x + 10 * y + 100 * t)
    np.testing.assert_allclose(wake.v, 2 * wake.u)
    np.testing.assert_allclose(wake.p, 3 * wake.u)
    assert "wake.mat" in wake.provenance


def test_another_file_of_harmonics_is_read(tmp_path):
    contents = small_harmonics()
    np.savez(tmp_path / "mine.npz", **contents)
    wake = load_wake(tmp_path / "mine.npz")
    expected = temporal_basis(wake.time, 5.9, 5) @ contents["harmonics"][:, 0, 2, 3]
    np.testing.assert_allclose(wake.u[3, 2], expected, rtol=1e-12)


def _without(key):
    return lambda contents: {k: v for k, v in contents.items() if k != key}


def _with(key, change):
    return lambda contents: contents | {key: change(contents[key])}


DAMAGED_CLASSICAL = {
    "missing": (_without("p_star"), "lacks 'p_star'"),
    "transposed": (_with("U_star", lambda a: a.transpose(2, 1, 0)), "'U_star' of shape"),
    "flat places": (_with("X_star", lambda a: a[:, :1]), "'X_star' of shape"),
    "text": (_with("t", lambda a: "now"), "finite real numbers in 't'"),
    "complex": (_with("p_star", lambda a: a + 1j), "finite real numbers in 'p_star'"),
    "not a number": (_with("p_star", lambda a: a * np.nan), "finite real numbers in 'p_star'"),
    "off the grid": (_with("X_star", lambda a: a + np.eye(*a.shape)), "rectangular grid"),
    "backwards": (_with("t", lambda a: a[::-1]), "increasing numbers in 't'"),
}


@pytest.mark.parametrize("damage", DAMAGED_CLASSICAL)
def test_wrong_classical_file_is_one_sentence(tmp_path, damage):
    change, message = DAMAGED_CLASSICAL[damage]
    savemat(tmp_path / "wake.mat", change(small_classical()))
    with pytest.raises(UserError, match=message) as caught:
        load_wake(tmp_path / "wake.mat")
    assert "wake.mat" in str(caught.value)
    assert "\n" not in str(caught.value)


DAMAGED_HARMONICS = {
    "missing": (_without("period"), "lacks 'period'"),
    "even": (_with("harmonics", lambda a: a[:4]), "'harmonics' of shape"),
    "turned": (_with("harmonics", lambda a: a.swapaxes(2, 3)), "'harmonics' of shape"),
    "text": (_with("x", lambda a: a.astype(str)), "finite real numbers in 'x'"),
    "backwards": (_with("y", lambda a: a[::-1]), "increasing numbers in 'y'"),
    "negative": (_with("period", lambda a: -a), "positive number as 'period'"),
    "endless": (_with("period", lambda a: a * np.inf), "finite real numbers in 'period'"),
    "pickled": (_with("x", lambda a: np.array([{}], dtype=object)), "Cannot read"),
}


@pytest.mark.parametrize("damage", DAMAGED_HARMONICS)
def test_wrong_harmonics_are_one_sentence(tmp_path, damage):
    change, message = DAMAGED_HARMONICS[damage]
    np.savez(tmp_path / "wake.npz", **change(small_harmonics()))
    with pytest.raises(UserError, match=message) as caught:
        load_wake(tmp_path / "wake.npz")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["mat", "npz"])
@pytest.mark.parametrize("kept", [0.0, 0.01, 0.3, 0.6, 0.95])
def test_truncated_file_is_one_sentence(tmp_path, kind, kept):
    file = tmp_path / f"wake.{kind}"
    if kind == "mat":
        savemat(file, small_classical(), do_compression=True)
    else:
        np.savez_compressed(file, **small_harmonics())
    content = file.read_bytes()
    file.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(UserError, match=r"wake\.(mat|npz)"):
        load_wake(file)


@pytest.mark.parametrize("kind", ["mat", "npz"])
def test_random_bytes_are_one_sentence(tmp_path, kind):
    file = tmp_path / f"wake.{kind}"
    file.write_bytes(np.random.default_rng(1).bytes(5000))
    with pytest.raises(UserError, match="Cannot read"):
        load_wake(file)


def test_absent_and_unknown_files_are_named(tmp_path):
    with pytest.raises(UserError, match=r"no wake file .*nowhere\.mat"):
        load_wake(tmp_path / "nowhere.mat")
    with pytest.raises(UserError, match="no wake file 'clasical'"):
        load_wake(source="clasical")
    (tmp_path / "wake.csv").write_text("x,y\n")
    with pytest.raises(UserError, match=r"wake\.csv"):
        load_wake(tmp_path / "wake.csv")


def test_blob_identifier_is_that_of_git(tmp_path):
    # `printf hello | git hash-object --stdin`
    (tmp_path / "file").write_bytes(b"hello")
    assert git_blob_identifier(tmp_path / "file") == "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A local server that offers a small file in the place of the classical one."""
    savemat(tmp_path / "offered.mat", small_classical())
    content = (tmp_path / "offered.mat").read_bytes()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(_wake, "CLASSICAL_URL", f"http://127.0.0.1:{server.server_port}/wake.mat")
    blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()
    monkeypatch.setattr(_wake, "CLASSICAL_BLOB", blob)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_fetch_downloads_checks_and_is_then_used(served, tmp_path, monkeypatch):
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache" / name)
    assert not wake_is_cached()
    with pytest.raises(UserError, match="has not been downloaded"):
        load_wake(source="classical")
    file = fetch_wake()
    assert wake_is_cached()
    assert load_wake(source="classical").u.shape == (5, 4, 3)
    assert load_wake().u.shape == (100, 50, 200)  # never used unasked
    modified = file.stat().st_mtime_ns
    assert fetch_wake() == file
    assert file.stat().st_mtime_ns == modified
    file.write_bytes(b"damaged")
    with pytest.raises(UserError, match="damaged"):
        load_wake(source="classical")
    fetch_wake()
    assert git_blob_identifier(file) == _wake.CLASSICAL_BLOB


def test_fetch_refuses_other_content_and_leaves_nothing(served, tmp_path, monkeypatch):
    monkeypatch.setattr(_wake, "CLASSICAL_BLOB", "0" * 40)
    with pytest.raises(UserError, match="not the classical wake"):
        fetch_wake(tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_fetch_offline_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(_wake, "CLASSICAL_URL", "http://127.0.0.1:9/wake.mat")
    with pytest.raises(UserError, match=r"Could not download .* copy the file") as caught:
        fetch_wake(tmp_path)
    assert "\n" not in str(caught.value)
    assert not wake_is_cached(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_written_harmonics_are_those_read(tmp_path):
    contents = small_harmonics()
    np.savez(tmp_path / "wake.npz", **contents)
    wake = read_harmonics(tmp_path / "wake.npz")
    np.testing.assert_array_equal(wake.harmonics, contents["harmonics"])
    assert wake.period == 5.9
