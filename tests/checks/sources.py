# SPDX-License-Identifier: Apache-2.0
"""The files of the project: what git tracks, or all but build folders where there is no git."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPP = {".cc", ".h", ".c"}
SKIPPED = 77


def tracked():
    """Paths relative to the root, of files that exist."""
    git = subprocess.run(["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}", "ls-files", "-z"],
                         capture_output=True, check=False)
    if git.returncode == 0 and git.stdout:
        names = [pathlib.Path(name) for name in git.stdout.decode().split("\0") if name]
    else:
        names = [path.relative_to(ROOT) for path in ROOT.rglob("*")
                 if not any(part.startswith((".git", "build")) for part in path.relative_to(ROOT).parts)]
    return sorted(name for name in names if (ROOT / name).is_file())


def cpp_files():
    return [name for name in tracked() if name.suffix in CPP]
