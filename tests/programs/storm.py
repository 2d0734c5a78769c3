#!/usr/bin/python3
"""storm.py TCASIM SCENARIO ROUNDS SEED: kills programs and simulators at random moments; each run ends soon, with the
status that belongs to what was done, and nothing of it stays. The moments are of real time, so a seed gives the order of
what is tried and not the same run. 77: there is no ib_send_lat."""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TCASIM, SCENARIO, ROUNDS, SEED = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
# A second or more each, so that none is finished when its signal comes.
PROGRAMS = ["ib_send_lat -n 50000", "ib_write_bw -n 5000", "ib_read_lat -n 50000", "ib_send_bw -e -n 5000",
            "ib_atomic_lat -n 50000"]
END_S, LIMIT_S = 20, 40  # of real time, on a busy machine: a hang would take the limit
KILLS = [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM]


def status_of(pid):
    """Its /proc/PID/stat as (state, parent); None: it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            state, parent = stat.read().rpartition(")")[2].split()[:2]
            return state, int(parent)
    except OSError:
        return None


def marked(mark):
    """Processes that have the mark in their environment, and live."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ:
                text = environ.read()
        except OSError:
            continue
        status = status_of(pid)
        if mark in text and status is not None and status[0] not in "ZX":
            found.append(int(pid))
    return found


def programs_of(pid):
    return [child for child in marked(b"TCASIM_ATTACH=") if (status_of(child) or ("", 0))[1] == pid]


def run_start(dice, folder, mark):
    program = dice.choice(PROGRAMS) + " -F"
    command = [TCASIM, "exec", SCENARIO, "--wall-limit", str(LIMIT_S), "--on", "node1", program, "--on", "node0", program + " node1"]
    return subprocess.Popen(command, env=dict(os.environ, XDG_RUNTIME_DIR=folder, STORM=mark), start_new_session=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def strike(dice, run, what):
    """Returns the statuses that may follow."""
    if what == "interrupt":
        run.send_signal(signal.SIGINT)
        return [130, -signal.SIGINT]  # the signal may come before the program has set up its handler
    if what == "simulator":
        run.kill()
        return [-signal.SIGKILL]
    number, programs = dice.choice(KILLS), []
    while not programs and run.poll() is None:
        programs = programs_of(run.pid)
    for pid in programs[:2 if what == "both" else 1]:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
    return [0, 1, 3, 128 + number]


def leftovers(folder, mark):
    for _ in range(100):  # programs of a killed simulator end within a moment
        left = [marked(b"STORM=" + mark.encode()), os.listdir(folder)]
        if left == [[], []]:
            return None
        time.sleep(0.05)
    return left


def strike_round(number):
    dice = random.Random(SEED * 1000003 + number)
    what = dice.choice(["one", "one", "both", "both", "interrupt", "simulator"])
    delay_s = dice.choice([0.0, 0.05, 0.3]) + dice.random() * 0.1
    with tempfile.TemporaryDirectory(prefix="storm-") as folder:
        mark = os.path.basename(folder)
        run = run_start(dice, folder, mark)
        time.sleep(delay_s)
        allowed = strike(dice, run, what) + ([0] if run.poll() is not None else [])
        began_s = time.monotonic()
        try:
            errors = run.communicate(timeout=END_S)[1]
        except subprocess.TimeoutExpired:
            return f"{what} after {delay_s:.3f} s: has not ended in {END_S} s: {run.args}\n{run.communicate()[1]}"
        if run.returncode not in allowed:
            return f"{what} after {delay_s:.3f} s: status {run.returncode}, not in {allowed}\n{errors}"
        if "left over" in errors:  # packets, in the simulated machine
            return f"{what} after {delay_s:.3f} s:\n{errors}"
        left = leftovers(folder, mark)
        if left is not None:
            return f"{what} after {delay_s:.3f} s: left processes {left[0]} and files {left[1]}"
        print(f"{number} {what} after {delay_s:.3f} s: {run.returncode} in {time.monotonic() - began_s:.2f} s", flush=True)
    return None


if shutil.which("ib_send_lat") is None:
    sys.exit(77)
for i in range(ROUNDS):
    wrong = strike_round(i)
    if wrong is not None:
        sys.exit(f"round {i} {wrong}")
