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
# What server and client are called with. A second or more each, so that none is finished when its signal comes.
PERFTEST = ["ib_send_lat -n 500000", "ib_write_bw -n 100000", "ib_read_lat -n 500000", "ib_send_bw -e -n 100000",
            "ib_atomic_lat -n 500000", "ib_send_lat -R -n 500000"]
PAIRS = [(f"{program} -F", f"{program} -F node1") for program in PERFTEST]
PAIRS += [("rping -s -C 200000", "rping -c -C 200000 -a node1"),
          ("rstream -S 64 -C 500000", "rstream -S 64 -C 500000 -s node1"),
          ("ucx_perftest", "ucx_perftest -t tag_lat -n 1000000 node1"),
          ("fi_pingpong -p verbs -e msg -I 500000", "fi_pingpong -p verbs -e msg -I 500000 node1"),
          # One program, which starts its ranks: the other node's is of no use to it.
          ("NPopenmpi", "mpirun.openmpi --mca plm_rsh_agent tcasim-rsh --mca pml ob1 --mca btl openib,self "
                        "--mca btl_openib_allow_ib 1 --host node0,node1 NPopenmpi -n 100 -u 4096 -o /dev/null")]
if "ibsim0" in SCENARIO:
    PAIRS += [(f"ib_send_lat -F -n 500000 -c {kind}", f"ib_send_lat -F -n 500000 -c {kind} node1")
              for kind in ["UD", "XRC", "UC"]]
# Of real time, on a busy machine. A receiver that waits for a peer that is gone learns nothing, as on the machine: the
# limit ends it, and the run says who waited.
LIMIT_S, END_S = 8, 40
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


def programs_of(mark, simulator):
    """The programs and what they have started, in the order of their numbers."""
    attached = set(marked(b"TCASIM_ATTACH=")) & set(marked(mark))
    return sorted(attached - {simulator})


def run_start(dice, folder, mark):
    server, client = dice.choice([pair for pair in PAIRS if shutil.which(pair[0].split()[0])])
    command = [TCASIM, "exec", SCENARIO, "--wall-limit", str(LIMIT_S)]
    command += [] if client.startswith("mpirun") else ["--on", "node1", server]
    command += ["--on", "node0", client]
    transport = dict(UCX_NET_DEVICES="tca0:1" if "tca0" in SCENARIO else "ibsim0:1", UCX_TLS="rc",
                     OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return subprocess.Popen(command, env=dict(os.environ, XDG_RUNTIME_DIR=folder, STORM=mark, **transport), start_new_session=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def strike(dice, run, what, mark):
    """Returns the statuses that may follow, None if programs choose it, and what the run must tell."""
    if what == "interrupt":
        run.send_signal(signal.SIGINT)
        return [0, 130, -signal.SIGINT], ""  # the signal may come before the program has set up its handler
    if what == "simulator":
        run.kill()
        return [-signal.SIGKILL], ""
    # On SIGSEGV, fi_pingpong's libraries take a mutex twice.
    number = dice.choice([kill for kill in KILLS if kill != signal.SIGSEGV or "fi_pingpong" not in str(run.args)])
    programs = []
    while not programs and run.poll() is None:
        programs = programs_of(mark, run.pid)
    dice.shuffle(programs)
    told = ""
    # UCX polls for seconds of simulated time for a peer that has nothing of its own under way.
    for pid in programs[:2 if what == "both" or "ucx_perftest" in str(run.args) else 1]:
        own = (status_of(pid) or ("", 0))[1] == run.pid
        try:
            os.kill(pid, number)
            # Others are their parents' to report, and programs may handle other signals.
            told = "was killed by signal 9 (SIGKILL)" if own and number == signal.SIGKILL else told
        except ProcessLookupError:
            pass
    return None, told


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
    delay_s = dice.choice([0.0, 0.05, 0.3, 1.0]) + dice.random() * 0.1
    with tempfile.TemporaryDirectory(prefix="storm-") as folder:
        mark = os.path.basename(folder)
        run = run_start(dice, folder, mark)
        time.sleep(delay_s)
        if run.poll() is not None:
            return f"is over after {delay_s:.3f} s with status {run.returncode}: {run.args}\n{run.communicate()[1]}"
        allowed, told = strike(dice, run, what, b"STORM=" + mark.encode())
        over = run.poll() is not None
        began_s = time.monotonic()
        left = leftovers(folder, mark) if what == "simulator" else None  # before its parent has waited for it
        try:
            errors = run.communicate(timeout=END_S)[1]
        except subprocess.TimeoutExpired:
            return f"{what} after {delay_s:.3f} s: has not ended in {END_S} s: {run.args}\n{run.communicate()[1]}"
        if not over and allowed is not None and run.returncode not in allowed:
            return f"{what} after {delay_s:.3f} s: status {run.returncode}, not in {allowed}: {run.args}\n{errors}"
        if not over and told not in errors:
            return f"{what} after {delay_s:.3f} s: does not say '{told}': {run.args}\n{errors}"
        if "left over" in errors:  # packets, in the simulated machine
            return f"{what} after {delay_s:.3f} s:\n{errors}"
        left = left or leftovers(folder, mark)
        if left is not None:
            return f"{what} after {delay_s:.3f} s: left processes {left[0]} and files {left[1]}: {run.args}"
        print(f"{number} {what} after {delay_s:.3f} s: {run.returncode} in {time.monotonic() - began_s:.2f} s", flush=True)
    return None


signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it, and so would the runs
if shutil.which("ib_send_lat") is None:
    sys.exit(77)
for i in range(ROUNDS):
    wrong = strike_round(i)
    if wrong is not None:
        sys.exit(f"round {i} {wrong}")
