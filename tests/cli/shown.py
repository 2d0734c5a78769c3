#!/usr/bin/env python3
"""shown.py SOURCE PROGRAM SCRATCH: what the program shows on terminals of any width, as JSON, and in folders.

On a terminal lines fit its width and have colours, unless NO_COLOR is set; in a pipe there are none. The tables of
--json are those of the files that the same run has written. A sweep has a folder for each value, as if it had been run
alone.
"""
import csv
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios

SOURCE, PROGRAM, SCRATCH = sys.argv[1:]
FIGURE = f"{SOURCE}/scenarios/figures/kobayashi2018-table2-latency.yaml"
SMALLEST = f"{SOURCE}/scenarios/smoke/smallest.yaml"
ESCAPE = re.compile(r"\x1b\[[0-9;]*[mK]")


def fail(text):
    sys.exit(f"FAILED: {text}")


def on_terminal(columns, *arguments, **environment):
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        os.environ.update({"TERM": "xterm", **environment})
        os.execv(PROGRAM, [PROGRAM, *arguments])
    text = b""
    while True:
        try:
            more = os.read(fd, 65536)
        except OSError:
            break
        if not more:
            break
        text += more
    os.waitpid(pid, 0)
    return text.decode()


def in_pipe(*arguments, status=0):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    if done.returncode != status:
        fail(f"{arguments} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def widths_check():
    for columns in 70, 80, 110, 200:
        text = ESCAPE.sub("", on_terminal(columns, "run", FIGURE, "--out", f"{SCRATCH}/figure"))
        table = text[text.index("Simulated against published"):].splitlines()[1:5]
        if max(map(len, table)) > columns:
            fail(f"a line of {max(map(len, table))} characters on a terminal of {columns}:\n{text}")
        if len(table) < 4 or "K01" not in table[2] or "3.92" not in table[2]:
            fail(f"a number is missing on a terminal of {columns}:\n{text}")
        for line in ESCAPE.sub("", on_terminal(columns, "params", "flight")).splitlines():
            if "signal propagation" in line and len(line) > columns:
                fail(f"params has a line of {len(line)} characters on a terminal of {columns}")


def colours_check():
    text = on_terminal(110, "run", FIGURE, "--out", f"{SCRATCH}/figure")
    if "\x1b[33mnear\x1b[0m" not in text or "\x1b[32mok\x1b[0m" not in text:
        fail(f"no colours on a terminal:\n{text}")
    if "\x1b[31mtcasim:\x1b[0m" not in on_terminal(80, "params", "no-such-key"):
        fail("an error has no colour on a terminal")
    for environment in {"NO_COLOR": "1"}, {"TERM": "dumb"}:
        text = on_terminal(110, "run", FIGURE, "--out", f"{SCRATCH}/figure", **environment)
        if "\x1b" in text:
            fail(f"colours with {environment}:\n{text}")
    if "\x1b" in in_pipe("run", FIGURE, "--out", f"{SCRATCH}/figure"):
        fail("colours in a pipe")


def values_read(text):
    decoder, values, at = json.JSONDecoder(), [], 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        values.append(value)
        at += len(text[at:]) - len(text[at:].lstrip())
    return values


def table_check(table, path):
    with open(path, newline="") as file:
        head, *rows = csv.reader(file)
    if table["columns"] != head or len(table["rows"]) != len(rows) or not rows:
        fail(f"{path}: {len(rows)} rows, as JSON {len(table['rows'])}")
    for shown, row in zip(table["rows"], rows):
        for value, text in zip(shown, row):
            if (value != text) if isinstance(value, str) else (float(text) != value):
                fail(f"{path}: {text} is {value} as JSON")


def json_check():
    out = f"{SCRATCH}/json"
    twice = values_read(in_pipe("run", FIGURE, SMALLEST, "--json", "--out", out))
    if [value["scenario"] for value in twice] != [FIGURE, SMALLEST]:
        fail(f"run --json of two scenarios: {twice}")
    for value in twice:
        table_check(value["data"], value["results"] + "/data.csv")
        table_check(value["counters"], value["results"] + "/counters.csv")
    table_check(twice[0]["compare"], twice[0]["results"] + "/compare.csv")
    explained, = values_read(in_pipe("explain", SMALLEST, "--json", "--out", out))
    table_check(explained["breakdown"], f"{out}/breakdown.csv")
    checked, sums = values_read(in_pipe("crosscheck", SMALLEST, "--json"))
    point, = checked["points"]
    if point["rtl_us"] != point["twin_us"] or point["latency_percent"] != 0 or not point["holds"] or sums["differ"] != 0:
        fail(f"crosscheck --json: {checked}")
    fabric, = values_read(in_pipe("topo", SMALLEST, "--json"))
    if fabric["hops"] != [[0, 1], [1, 0]] or fabric["cables"][0]["root"] != "node1.W":
        fail(f"topo --json: {fabric}")
    keys, = values_read(in_pipe("params", "flight", "--json"))
    if not any(kind["name"] == "link" for kind in keys["kinds"]):
        fail("params --json has no links")
    kinds = values_read(in_pipe("counters", SMALLEST, "--json"))
    link, = [kind for kind in kinds if "NODE.E-NODE.W.0" in kind["components"]]
    if "tlps_sent" not in [counter["name"] for counter in link["counters"]] or "NODE.slot.1" not in link["components"]:
        fail(f"counters --json: {link}")
    with open(f"{out}/smallest/counters.csv", newline="") as file:
        named = {row["name"] for row in csv.DictReader(file)}
    listed = {counter["name"] for kind in kinds for counter in kind["counters"]}
    if not named <= listed:
        fail(f"counters does not list {named - listed}")
    measures = values_read(in_pipe("bench", "smallest", "--json"))
    if measures[0]["benchmark"] != "smallest" or measures[0]["unit"] != "s":
        fail(f"bench --json: {measures}")


def same(one, two):
    with open(one, "rb") as first, open(two, "rb") as second:
        if first.read() != second.read():
            fail(f"{one} and {two} differ")


def values_check():
    out, alone = f"{SCRATCH}/sweep", f"{SCRATCH}/alone"
    shutil.rmtree(out, ignore_errors=True)
    key = "cables.*.flight"
    for values in ["5 ns", "100 ns"], ["100 ns", "1 us"]:
        in_pipe("run", SMALLEST, "--quiet", "--out", out, "--set", f"sweep={{{key}: [{', '.join(values)}]}}")
        if sorted(os.listdir(f"{out}/values")) != sorted(values + ["index.csv"]):
            fail(f"the folders of {values}: {os.listdir(f'{out}/values')}")
    for value in values:
        folder = f"{out}/values/{value}"
        in_pipe("run", f"{folder}/resolved.yaml", "--quiet", "--out", alone)
        same(f"{folder}/data.csv", f"{alone}/data.csv")
        same(f"{folder}/counters.csv", f"{alone}/counters.csv")
    compared, = values_read(in_pipe("compare", f"{out}/values/100 ns", f"{out}/values/1 us", "--json", status=1))
    if compared["keys"][1:] != [["cables.0.flight", "100 ns", "1 us"]] or not compared["differ"]:
        fail(f"compare --json: {compared}")
    odd_values_check(out)
    copy = f"{out}/values/mine"
    shutil.copytree(f"{out}/values/_hidden, 8", copy)
    in_pipe("run", SMALLEST, "--quiet", "--out", out)
    if os.listdir(f"{out}/values") != ["mine"] or len(os.listdir(copy)) != 3:
        fail(f"without a sweep: {os.listdir(f'{out}/values')}")


def odd_values_check(out):
    """Values that are no names of folders, points that differ in the bytes of a parameter, and values within values."""
    with open(SMALLEST) as file, open(f"{SCRATCH}/odd.yaml", "w") as odd:
        odd.write(file.read() + "parameters:\n  - {name: way, value: x}\n  - {name: bytes, value: 8}\n")
    sweep = "sweep={parameters.way.value: [../up, .hidden], parameters.bytes.value: [8, 16]}"
    in_pipe("run", f"{SCRATCH}/odd.yaml", "--quiet", "--out", out, "--set", sweep)
    folders = sorted(os.listdir(f"{out}/values"))
    if folders != sorted(["_.-up, 8", "_.-up, 16", "_hidden, 8", "_hidden, 16", "index.csv"]):
        fail(f"folders of odd values: {folders}")
    for folder in folders[:-1]:
        with open(f"{out}/values/{folder}/counters.csv", newline="") as file:
            series = {row["series"] for row in csv.DictReader(file)}
        if series != {"DMA"}:
            fail(f"{folder}: counters of {series}")


os.makedirs(SCRATCH, exist_ok=True)
widths_check()
colours_check()
json_check()
values_check()
