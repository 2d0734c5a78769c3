#!/usr/bin/python3
"""waiting.py TCASIM SCENARIO: `kill` from outside the run ends a program that waits for the other side, at once and not
when the other side, which is busy for minutes, has finished; and the run says so. 77: there is no ib_write_bw."""
import os
import shutil
import signal
import subprocess
import sys
import time

SERVER, CLIENT = "ib_write_bw -F -n 4000000", "ib_write_bw -F -n 4000000 node1"


def server_of(parent):
    """The number of the parent's child that is the server; None: it has not begun."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat, open(f"/proc/{name}/cmdline") as cmdline:
                is_child = int(stat.read().rpartition(")")[2].split()[1]) == parent
                if is_child and cmdline.read().split("\0")[:-1] == SERVER.split():
                    return int(name)
        except OSError:
            pass
    return None


if shutil.which("ib_write_bw") is None:
    sys.exit(77)

def end_by(number, name):
    """A run whose server is ended by this signal, which the run notes as an event from outside."""
    run = subprocess.Popen([sys.argv[1], "exec", sys.argv[2], "--on", "node1", SERVER, "--on", "node0", CLIENT],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        while server_of(run.pid) is None and run.poll() is None:
            time.sleep(0.02)
        time.sleep(2)  # the client writes, and the server waits for its end
        os.kill(server_of(run.pid), number)
        errors = run.communicate(timeout=40)[1]
        assert "ib_write_bw" in errors and f"was killed by signal {number:d} ({name})" in errors, errors
        assert "another run may differ: programs waited for an event from outside of the run" in errors, errors
    finally:
        run.kill()


end_by(signal.SIGTERM, "SIGTERM")
end_by(signal.SIGKILL, "SIGKILL")
