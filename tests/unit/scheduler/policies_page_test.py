#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""policies_page_test.py ROOT HAWSER: does what docs/policies.md says, in a folder of its own, and sees that the page shows what the
example has."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.S)


def main():
    root, hawser = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    page = (root / "docs/policies.md").read_text()
    example = (root / "examples/policy/lightest.c").read_text()
    for block in blocks(page, "c"):
        if block not in example:
            print(f"not in the example:\n{block}")
            return 1
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "include").symlink_to(root / "include")
        (folder / "examples").symlink_to(root / "examples")
        environment = dict(os.environ, PATH=f"{hawser.parent}:{os.environ['PATH']}")

        def run(command):
            result = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            print(f"$ {command}\n{result.stdout}{result.stderr}")
            if result.returncode != 0:
                raise SystemExit(f"ended with {result.returncode}")
            return result.stdout

        commands = [line for block in blocks(page, "sh") for line in block.splitlines()]
        if len(commands) < 3:
            print("the page has lost its commands")
            return 1
        for command in commands:
            run(command)
        if "<svg" not in (folder / "lightest.svg").read_text():
            print("no picture was drawn")
            return 1
        # The other way to build it, and its shares.
        run("cmake -S examples/policy -B build-lightest && cmake --build build-lightest")
        result = json.loads(run("hawser sim sched --policy build-lightest/lightest.so --scenario weights-30-70 --json -"))
        if [tenant["name"] for tenant in result["tenants"]] != ["w30", "w70"] or abs(result["tenants"][0]["share"] - 0.3) > 0.01:
            print(f"shares are not 30:70 but {[tenant['share'] for tenant in result['tenants']]}")
            return 1
        # The page's scenario is one.
        (folder / "mine.json").write_text(blocks(page, "json")[0])
        run("hawser sim sched --policy ./lightest.so --scenario ./mine.json")
        # Without its runnable(), the sleeper is paid for having slept, and somebody starves.
        greedy = example.replace("      .runnable = runnable,\n", "").replace("static void runnable(", "void runnable(")
        (folder / "greedy.c").write_text(greedy)
        run("cc -std=c11 -shared -fPIC -I include greedy.c -o greedy.so")
        result = subprocess.run("hawser policy test ./greedy.so --seeds 10", shell=True, cwd=folder, env=environment,
                                capture_output=True, text=True, check=False)
        if result.returncode == 0 or "starve" not in result.stdout:
            print(f"nobody found that this starves:\n{result.stdout}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
