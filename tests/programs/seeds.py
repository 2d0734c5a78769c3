#!/usr/bin/python3
# seeds.py <tcasim> <scenario>: Ctrl-C during `exec --seeds` ends all of its runs and their programs. (A shell would
# start background programs with SIGINT ignored, so this is not a shell script.)
import os
import signal
import subprocess
import sys
import tempfile
import time


def running(words):
    """Processes whose arguments have these words."""
    found = 0
    for name in os.listdir('/proc'):
        try:
            with open(f'/proc/{name}/cmdline', 'rb') as file:
                found += name.isdigit() and name != str(os.getpid()) and words.encode() in file.read()
        except OSError:
            pass
    return found


def within(seconds, condition):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


with tempfile.TemporaryDirectory() as folder:
    words = f'mktemp -p {folder}'
    command = [sys.argv[1], 'exec', sys.argv[2], '--seeds', '1..8', '--jobs', '2', '--on', 'node0',
               f"sh -c '{words}; while :; do :; done'"]
    parent = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert within(40, lambda: len(os.listdir(folder)) == 2), 'two runs have not begun'
        parent.send_signal(signal.SIGINT)
        assert parent.wait(20) == -signal.SIGINT, parent.returncode
        print(parent.stderr.read())
        assert within(20, lambda: running(words) == 0), 'programs are left'
    finally:
        parent.kill()
