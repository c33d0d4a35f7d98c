"""The notebooks: each runs from its first cell to its last, and says nothing on standard error."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("matplotlib")

NAMES = ["camera", "plot", "recording", "teleoperation"]
NOTEBOOKS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "notebooks"


@pytest.fixture(scope="module")
def fonts(tmp_path_factory):
    """What matplotlib finds out about fonts, once for all: it says so where that takes long."""
    path = str(tmp_path_factory.mktemp("fonts"))
    command = [sys.executable, "-c", "import matplotlib.font_manager"]
    subprocess.run(command, env={**os.environ, "MPLCONFIGDIR": path}, capture_output=True, check=True)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_runs(name, folder, fonts, tmp_path):
    notebook = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text())
    # What a cell shows is not kept: it is of the machine that ran it.
    assert all(cell.get("outputs", []) == [] for cell in notebook["cells"])
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    # Pictures are drawn, with nobody to look at them.
    program = "\n\n".join(cells) + "\n\nplt.savefig('last.png')\n"
    environment = {**os.environ, "MPLBACKEND": "Agg", "MPLCONFIGDIR": fonts, "TSUJI_INTEROP": "none", "TSUJI_RUNTIME_DIR": folder}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")
    assert (tmp_path / "last.png").stat().st_size > 1000


def test_all_are_run():
    assert sorted(it.stem for it in NOTEBOOKS.glob("*.ipynb")) == NAMES
