#!/usr/bin/env python3
"""draws.py TCASIM [--draws N] [--seed K] [--jobs N] [--check ROWS]: writes configs/draws.csv, from which
`tcasim run --interval` takes other values for the presets.

A draw gives every value of a preset that has a range another one within it: a Latin hypercube, so that N draws cover each
range evenly; on a logarithmic scale where the ends differ by a factor of four or more, and powers of two where value and
ends are some. What the published rows with the use `calibrate` set (CALIBRATED) is then solved again, by the change of a row
for a change of its key, until each row has the value that it has with the presets as they are. A draw whose rows do not
come within 5 % of the published values is left out, or whose keys would leave their bounds.

--check ROWS: solves nothing; of so many draws of the file, spread over it, the rows hold.
"""
import argparse
import concurrent.futures
import csv
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLE = ROOT / "configs/draws.csv"
KINDS = {"host": "host", "board": "board", "gpu": "gpu", "hca": "hca", "fpga": "fpga", "link": "link",
         "ib_switch": "ib_switch"}
ROUNDS = 6
CLOSE = 0.002   # of a row's value, at which it is solved
HOLDS = 5       # per cent of the published value
OF_ONE = 5      # per cent of a row that was not within HOLDS before: not more than that farther

# Which row sets what: several keys share what one row leaves for them. (keys, rows, least, most)
CALIBRATED = [
    (["host.xeon-e5-2670.flush_wc"], "H08", 0, 1000),
    (["board.peach2-2013-02.dmac_start_cycles"], "H09", 1, 1000),
    (["board.peach2-production.dmac_start_cycles"], "S02", 1, 1000),
    (["hca.connectx-ddr.pcie_tx", "hca.connectx-ddr.pcie_rx"], "A12", 1, 1000),
    (["hca.connectx-ddr.port_tx", "hca.connectx-ddr.port_rx"], "A22", 1, 1000),
    (["hca.connectx-qdr.pcie_tx", "hca.connectx-qdr.pcie_rx"], "A17", 1, 1000),
    (["hca.connectx-ddr.atomic_answer"], "A27", 0, 1000),
    (["hca.connectx3-qdr.port_tx", "hca.connectx3-qdr.port_rx"], "S20", 1, 1000),
    (["fpga.arria10-ppx.write_start_cycles"], "K04", 1, 1000),
    (["gpu.p100.read"], "K07", 1, 5000),
    (["fpga.arria10-ppx.read_start_cycles"], "K02", 1, 1000),
]


def split(text):
    """(number, unit) of "1.5 ns", "512 B", "24"."""
    number, _, unit = text.strip().partition(" ")
    return float(number), unit


SIZES = {"ps": 1e-3, "ns": 1, "us": 1e3, "ms": 1e6, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "": 1,
         "GB/s": 1, "MHz": 1}
BASE = {"ps": "ns", "ns": "ns", "us": "ns", "ms": "ns", "B": "B", "KiB": "B", "MiB": "B", "GiB": "B", "": "",
        "GB/s": "GB/s", "MHz": "MHz"}


def amount(text):
    number, unit = split(text)
    return number * SIZES[unit], BASE[unit]


def written(value, unit):
    if unit == "":
        return str(int(value + 0.5))
    if unit == "B":
        return f"{int(value + 0.5)} B"
    return f"{value:.3f} {unit}"


def is_power(value):
    return value >= 1 and value == int(value) and int(value) & (int(value) - 1) == 0


class Range:
    def __init__(self, path, value, least, most):
        self.path = path
        self.value, self.unit = amount(value)
        self.least, self.most = amount(least)[0], amount(most)[0]
        ends = (self.value, self.least, self.most)
        self.powers = self.unit in ("", "B") and all(is_power(end) for end in ends)

    def at(self, part):
        """The value at a part of the range, 0 to 1."""
        if self.powers:
            steps = int(math.log2(self.most / self.least) + 0.5) + 1
            return self.least * 2 ** min(int(part * steps), steps - 1)
        if self.least > 0 and self.most >= 4 * self.least:
            return self.least * (self.most / self.least) ** part
        return self.least + part * (self.most - self.least)


def presets(tcasim):
    """(ranges, {path: value as in the preset}) of all presets."""
    kinds = json.loads(subprocess.run([tcasim, "params", "--json"], stdout=subprocess.PIPE, check=True).stdout)["kinds"]
    ranges, values = [], {}
    for kind in kinds:
        for key in kind["keys"]:
            for preset in key["presets"]:
                if "as" in preset or "value" not in preset:
                    continue
                path = f"{kind['presets']}.{preset['preset']}.{key['name']}"
                values[path] = preset["value"]
                if "least" in preset:
                    ranges.append(Range(path, preset["value"], preset["least"], preset["most"]))
    return ranges, values


def hypercube(ranges, draws, seed):
    """For each draw {path: value}."""
    drawn = [{} for _ in range(draws)]
    for one in ranges:
        source = random.Random(f"{seed} {one.path}")
        places = list(range(draws))
        source.shuffle(places)
        for draw, place in zip(drawn, places):
            draw[one.path] = written(one.at((place + source.random()) / draws), one.unit)
    return drawn


# --- rows -------------------------------------------------------------------------------------------------------------


def rows_of(tcasim, values):
    """{row: (simulated, error in per cent)} with these values of presets; the largest error where a row has several."""
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        for scenario in sorted(HERE.glob("rows-*.yaml")):
            words = [tcasim, "run", scenario, "--quiet", "--jobs", "1", "--out", folder]
            if "board" in scenario.read_text():
                words += ["--set", "fidelity=twin"]
            for path, value in values.items():
                words += ["--set", f"presets.{path}={value}"]
            words += ["--set-unused-presets"]
            subprocess.run(words, check=True, stderr=subprocess.PIPE)
            with open(pathlib.Path(folder) / "compare.csv", newline="") as table:
                for row in csv.DictReader(table):
                    error = float(row["error_percent"])
                    if row["id"] not in rows or abs(error) > abs(rows[row["id"]][1]):
                        rows.setdefault(row["id"], (float(row["simulated"]), error))
    return rows


def slopes(tcasim, values):
    """What each calibrated row changes for a unit of its keys."""
    nominal, found = rows_of(tcasim, {}), {}
    for keys, row, *_ in CALIBRATED:
        step = max(4.0, 0.1 * amount(values[keys[0]])[0])
        changed = {key: written(amount(values[key])[0] + step, amount(values[key])[1]) for key in keys}
        found[row] = (rows_of(tcasim, changed)[row][0] - nominal[row][0]) / step
    return nominal, found


def solve(tcasim, draw, values, nominal, slope):
    """The draw with its calibrated keys; None: it does not hold."""
    solved = {key: amount(values[key]) for keys, *_ in CALIBRATED for key in keys}
    for _ in range(ROUNDS):
        given = {**draw, **{key: written(*value) for key, value in solved.items()}}
        rows = rows_of(tcasim, given)
        if all(abs(rows[row][0] / nominal[row][0] - 1) < CLOSE for _, row, *_ in CALIBRATED):
            break
        for keys, row, least, most in CALIBRATED:
            by = (nominal[row][0] - rows[row][0]) / slope[row]
            for key in keys:
                value, unit = solved[key]
                solved[key] = (min(max(value + by, least), most), unit)
    holds = all(abs(error) <= max(HOLDS, abs(nominal[row][1]) + OF_ONE / 5) for row, (_, error) in rows.items())
    return given if holds else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tcasim")
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    ranges, values = presets(options.tcasim)
    nominal, slope = slopes(options.tcasim, values)
    drawn = hypercube(ranges, options.draws, options.seed)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        made = list(pool.map(lambda draw: solve(options.tcasim, draw, values, nominal, slope), drawn))
    kept = [draw for draw in made if draw]
    with open(TABLE, "w", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(kept[0])
        table.writerows(draw.values() for draw in kept)
    print(f"{len(kept)} of {len(drawn)} draws hold")


if __name__ == "__main__":
    sys.exit(main())
