#!/usr/bin/env python3
"""draws.py TCASIM [--draws N] [--seed K] [--jobs N] [--check N]: writes configs/draws.csv, from which
`tcasim run --interval` takes other values for the presets.

A draw gives every value of a preset that has a range another one within it: a Latin hypercube, so that N draws cover each
range evenly; on a logarithmic scale where the ends differ by a factor of four or more, and powers of two where value and
ends are some. What the published rows with the use `calibrate` set (CALIBRATED) is then solved again, by the change of a row
for a change of its key, until each row has the value that it has with the presets as they are. A draw whose rows do not
come within 5 % of the published values is left out, or whose keys would leave their bounds.

--check N: writes nothing. The table has every value with a range, within it, and in the first N draws the rows hold.
"""
import argparse
import collections
import concurrent.futures
import csv
import functools
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLE = ROOT / "configs/draws.csv"
ROUNDS = 6
CLOSE = 0.002   # of a row's value, at which it is solved
HOLDS = 5       # per cent of the published value

# Which rows set what, one scenario after the other: several keys share what one row leaves for them.
# {scenario: [(keys, row, least, most)]}
CALIBRATED = {
    "rows-hanawa2013.yaml": [
        (["host.xeon-e5-2670.flush_wc"], "H08", 0, 1000),
        (["board.peach2-2013-02.dmac_start_cycles"], "H09", 1, 1000),
        (["host.xeon-e5-2670.peer_reads_max"], "H03", 1, 64),
    ],
    "rows-sato2015.yaml": [
        (["board.peach2-production.dmac_start_cycles"], "S02", 1, 1000),
        (["host.xeon-e5-2680v2.peer_reads_max"], "S04", 1, 64),
        (["hca.connectx3-qdr.port_tx", "hca.connectx3-qdr.port_rx"], "S20", 1, 1000),
    ],
    "rows-akimoto2012.yaml": [
        (["hca.connectx-ddr.pcie_tx", "hca.connectx-ddr.pcie_rx"], "A12", 1, 1000),
        (["hca.connectx-ddr.port_tx", "hca.connectx-ddr.port_rx"], "A22", 1, 1000),
        (["hca.connectx-qdr.pcie_tx", "hca.connectx-qdr.pcie_rx"], "A17", 1, 1000),
        (["hca.connectx-ddr.atomic_answer"], "A27", 0, 1000),
    ],
    "rows-kobayashi2018.yaml": [
        (["fpga.arria10-ppx.write_start_cycles"], "K04", 1, 1000),
        (["gpu.p100.read"], "K07", 1, 5000),
        (["fpga.arria10-ppx.read_start_cycles"], "K02", 1, 1000),
    ],
}


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


@functools.cache
def used_by(tcasim, scenario):
    """The values of presets that a scenario uses."""
    _, values = presets(tcasim)
    words = [word for path, value in values.items() for word in ("--set", f"presets.{path}={value}")]
    said = subprocess.run([tcasim, "check", HERE / scenario, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    unused = set(re.findall(r"--set presets\.(\S+?)=.*: no preset of the scenario", said))
    return set(values) - unused


def rows_of(tcasim, scenario, values):
    """{row: (simulated, error in per cent)} with these values of presets; the first of a row's values, the largest error."""
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        words = [tcasim, "run", HERE / scenario, "--quiet", "--jobs", "1", "--out", folder]
        if "ha-pacs" in (HERE / scenario).read_text():
            words += ["--set", "fidelity=twin"]
        for path, value in values.items():
            if path in used_by(tcasim, scenario):
                words += ["--set", f"presets.{path}={value}"]
        if subprocess.run(words, stderr=subprocess.DEVNULL).returncode != 0:
            return None
        with open(pathlib.Path(folder) / "compare.csv", newline="") as table:
            for row in csv.DictReader(table):
                simulated, error = rows.get(row["id"], (float(row["simulated"]), 0))
                rows[row["id"]] = simulated, max(abs(error), abs(float(row["error_percent"])))
    return rows


def slopes(tcasim, values):
    """The rows with the presets as they are, and what each calibrated row changes for a unit of its keys."""
    nominal, found = {}, {}
    for scenario, calibrated in CALIBRATED.items():
        nominal |= (as_is := rows_of(tcasim, scenario, {}))
        for keys, row, *_ in calibrated:
            value, unit = amount(values[keys[0]])
            step = 1.0 if row in ("H03", "S04") else max(4.0, 0.1 * value)
            changed = {key: written(value + step, unit) for key in keys}
            found[row] = (rows_of(tcasim, scenario, changed)[row][0] - as_is[row][0]) / step
    return nominal, found


def solve(tcasim, draw, values, nominal, slope):
    """The draw with its calibrated keys; else the row that does not hold."""
    for scenario, calibrated in CALIBRATED.items():
        solved = {key: amount(values[key]) for keys, *_ in calibrated for key in keys}
        for left in reversed(range(ROUNDS)):
            given = {**draw, **{key: written(*value) for key, value in solved.items()}}
            rows = rows_of(tcasim, scenario, given)
            if rows is None:
                return scenario
            if left == 0 or all(abs(rows[row][0] / nominal[row][0] - 1) < CLOSE for _, row, *_ in calibrated):
                break
            for keys, row, least, most in calibrated:
                by = (nominal[row][0] - rows[row][0]) / slope[row]
                for key in keys:
                    value, unit = solved[key]
                    solved[key] = (min(max(value + by, least), most), unit)
        for row, (_, error) in rows.items():
            if error > max(HOLDS, nominal[row][1]):
                return row
        draw = given
    return draw


def check(tcasim, count, ranges, values):
    """What is wrong with the table."""
    with open(TABLE, newline="") as table:
        draws = list(csv.DictReader(table))
    calibrated = {key for entries in CALIBRATED.values() for keys, *_ in entries for key in keys}
    wanted = {one.path for one in ranges} | calibrated
    for path in sorted(wanted ^ set(draws[0])):
        yield f"{path}: {'is no column' if path in wanted else 'has no range'}"
    for number, draw in enumerate(draws, 1):
        for one in ranges:
            at = amount(draw.get(one.path, "0"))[0]
            if one.path not in calibrated and not one.least * 0.999 <= at <= one.most * 1.001:
                yield f"draw {number}: {one.path} is {draw.get(one.path)}"
    for number, draw in enumerate(draws[:count], 1):
        for scenario in CALIBRATED:
            nominal, rows = rows_of(tcasim, scenario, {}), rows_of(tcasim, scenario, draw)
            for row, (_, error) in rows.items():
                if error > max(HOLDS, nominal[row][1]):
                    yield f"draw {number}: {row} is {error:.1f} % from the published value"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tcasim")
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--check", type=int)
    options = parser.parse_args()
    ranges, values = presets(options.tcasim)
    if options.check is not None:
        wrong = list(check(options.tcasim, options.check, ranges, values))
        print("\n".join(wrong))
        return 1 if wrong else 0
    nominal, slope = slopes(options.tcasim, values)
    drawn = hypercube(ranges, options.draws, options.seed)
    kept, lost = [], collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for draw in pool.map(lambda draw: solve(options.tcasim, draw, values, nominal, slope), drawn):
            if isinstance(draw, dict):
                kept.append(draw)
            else:
                lost[draw] += 1
            print(f"\r{len(kept)} of {len(kept) + lost.total()} draws hold", end="", file=sys.stderr, flush=True)
    with open(TABLE, "w", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(kept[0])
        table.writerows(draw.values() for draw in kept)
    print(f"\n{len(kept)} of {len(drawn)} draws hold; the others miss " + ", ".join(f"{row} {n}" for row, n in lost.most_common()))


if __name__ == "__main__":
    sys.exit(main())
