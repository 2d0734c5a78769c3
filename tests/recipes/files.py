#!/usr/bin/env python3
"""files.py SOURCE SLUG: the patch of a recipe applies to the tree, and touches what the recipe of CONTRIBUTING.md says.

A recipe begins "**A register** (4 files: `rtl/registers.def`, `rtl/`, ...; and its rooms `a/<id>/`, ...)". Each file of
the patch belongs to one of the names, `<...>` is any word, a name that ends with / is a folder. At most as many files as
the recipe says, beside those in rooms of the addition's own. The first line of a patch names its recipe.
"""
import re
import subprocess
import sys


def fail(text):
    sys.exit(f"FAILED: {text}")


def recipe_read(source, title):
    text = open(f"{source}/CONTRIBUTING.md").read()
    found = re.findall(rf"^\*\*{re.escape(title)}\*\* \((\d+) files?: ([^)]*)\)\.", text, re.M)
    if len(found) != 1:
        fail(f"CONTRIBUTING.md has {len(found)} recipes '{title}' with a number of files")
    names, _, rooms = found[0][1].partition(";")
    most, names, rooms = int(found[0][0]), re.findall(r"`([^`]+)`", names), re.findall(r"`([^`]+)`", rooms)
    if most != len(names):
        fail(f"'{title}' says {most} files and names {len(names)}")
    return names, rooms


def belongs(path, name):
    pattern = re.sub(r"<\w+>", "[a-z0-9_]+", re.escape(name).replace(r"\<", "<").replace(r"\>", ">"))
    return re.match(pattern + ("" if name.endswith("/") else "$"), path) is not None


def main():
    source, slug = sys.argv[1:]
    patch = f"{source}/tests/recipes/{slug}.patch"
    title = open(patch).readline().strip()
    names, rooms = recipe_read(source, title)
    applies = subprocess.run(["git", "apply", "--check", patch], cwd=source, capture_output=True, text=True)
    if applies.returncode != 0:
        fail(f"{patch} does not apply:\n{applies.stderr}")
    listed = subprocess.run(["git", "apply", "--numstat", patch], cwd=source, capture_output=True, text=True, check=True)
    paths = [line.split("\t")[2] for line in listed.stdout.splitlines()]
    counted = [path for path in paths
               if any(belongs(path, name) for name in names) or not any(belongs(path, room) for room in rooms)]
    for path in counted:
        if not any(belongs(path, name) for name in names):
            fail(f"{path} is not among the files of '{title}': {', '.join(names)}")
    if not counted or len(counted) > len(names):
        fail(f"'{title}' takes {len(counted)} files and not at most {len(names)}: {', '.join(counted)}")
    print(f"{title}: {len(counted)} files, {len(paths) - len(counted)} in rooms of its own")


main()
