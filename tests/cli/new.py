#!/usr/bin/env python3
"""new.py PROGRAM SCRATCH: what `tcasim new` writes has no mistakes, runs, and holds; so does its what-if."""
import os
import re
import shutil
import subprocess
import sys

PROGRAM, SCRATCH = sys.argv[1:]
FORMS = {"pair": ["--pair"], "ring": ["--ring", "4"], "verbs": ["--verbs", "ibsim0"], "boards": ["--verbs", "tca0"],
         "programs": ["--programs", "ibsim0"], "programs-tca": ["--programs", "tca0"]}


def tcasim(*arguments, status=0):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, cwd=SCRATCH)
    if done.returncode != status:
        sys.exit(f"FAILED: {arguments} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


shutil.rmtree(SCRATCH, ignore_errors=True)
os.makedirs(SCRATCH)
for name, words in FORMS.items():
    file = f"{name}.yaml"
    tcasim("new", file, *words)
    tcasim("check", file)
    if not name.startswith("programs"):
        assert "holds" in tcasim("run", file), name
        with open(f"{SCRATCH}/{file}") as start, open(f"{SCRATCH}/if-{file}", "w") as changed:
            text = re.sub(r"^# sweep:", "sweep:", start.read(), flags=re.M)
            changed.write(re.sub(r"^#   (\S+: \[.*\])$", r"  \1", text, flags=re.M))
        tcasim("check", f"if-{file}")
    elif shutil.which("ib_send_lat"):
        assert "hold" in tcasim("exec", file), name
assert "exists already" in tcasim("new", "pair.yaml", status=2)
assert "2 to 16" in tcasim("new", "x.yaml", "--ring", "17", status=2)
assert "choose one" in tcasim("new", "x.yaml", "--pair", "--verbs", "tca0", status=2)
assert "ibsim0 or tca0" in tcasim("new", "x.yaml", "--verbs", "mlx5_0", status=2)
assert not os.path.exists(f"{SCRATCH}/x.yaml")
