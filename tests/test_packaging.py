"""The wheel, installed outside the clone: it holds all that the command needs, and no torch is imported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from redclf import __version__
from redclf.models import shipped_models

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "library_desk.json"

pytest.importorskip("hatchling")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel with the hatchling that is installed, without isolation."""
    out = tmp_path_factory.mktemp("dist")
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(out)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """Unpack the wheel into a fresh environment that shares the libraries of this one, and nothing of the clone."""
    place = tmp_path_factory.mktemp("user")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "venv")], check=True)
    found = subprocess.run(
        [str(place / "venv" / "bin" / "python"), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    site = Path(found.stdout.strip())
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    libraries = [path for path in sys.path if path.endswith("-packages")]
    (site / "shared.pth").write_text("\n".join(libraries))
    return place / "venv" / "bin" / "python"


def run(python: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [str(python), *map(str, arguments)], cwd=python.parent, capture_output=True, text=True, env=environment
    )


def detect_without_torch(python: Path, *arguments: object) -> str:
    code = (
        "import sys; from redclf.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules, 'torch was imported'"
    )
    done = run(python, "-c", code, "detect", EXAMPLE, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_what_the_wheel_holds(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {"redclf/cli.py", "redclf/py.typed", "redclf/data/prices.json"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("train/", "tests/", "configs/"))]
    for info in shipped_models():
        assert f"redclf/_models/{info.name}/config.json" in names
    metadata = next(name for name in names if name.endswith("METADATA"))
    text = zipfile.ZipFile(wheel).read(metadata).decode()
    needed = [line for line in text.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    names_of = {re.split(r"[^A-Za-z0-9-]", line.removeprefix("Requires-Dist: "))[0] for line in needed}
    assert names_of == {"numpy", "onnxruntime", "tokenizers", "typer", "rich", "ijson"}


def test_the_installed_copy_is_the_one_that_runs(python):
    done = run(python, "-c", "import redclf; print(redclf.__file__)")
    assert Path(done.stdout.strip()).is_relative_to(python.parents[1])


def test_version(python):
    assert run(python, "-m", "redclf", "--version").stdout == f"redclf {__version__}\n"


def test_detect(python):
    assert "2 redundant" in detect_without_torch(python, "--detector", "heuristic")


@pytest.mark.shipped_model
@pytest.mark.skipif(not shipped_models(), reason="models/ holds no shipped model")
def test_detect_with_the_shipped_model(python):
    assert "redundant" in detect_without_torch(python)


def test_training_needs_a_clone(python):
    done = run(python, "-m", "redclf", "train", "--config", "x")
    assert done.returncode == 2 and "clone" in done.stderr and len(done.stderr.splitlines()) == 1
