#!/usr/bin/env python3
"""draws.py TCASIM [--draws N] [--seed K] [--jobs N] [--check N]: writes configs/draws.csv, from which
`tcasim run --interval` takes other values for the presets.

A draw gives every value of a preset that has a range another one within it: a Latin hypercube, which covers each range
evenly; on a logarithmic scale where the ends differ by a factor of four or more, and powers of two where
value and ends are some. What the published rows with the use `calibrate` set (CALIBRATED) is then solved again, by the
change of a row for a change of its key, until each row has the value that it has with the presets as they are. Kept are
the first N draws all of whose rows are within 5 % of what rounds to the published value. Most are not: candidates whose
rows would be further off if what each value alone changes could be added are not tried.

--check N: writes nothing. The table has every value with a range, within it, and in the first N draws the rows hold.
"""
import argparse
import collections
import concurrent.futures
import csv
import functools
import itertools
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
ROUNDS = 8
CANDIDATES = 4000 # of a hypercube; as many hypercubes as are needed
CLOSE = 0.002   # of a row's value, at which it is solved
HOLDS = 5       # per cent of what rounds to the published value
SLACK = 2       # times HOLDS, for the sum of what single values change
UNMOVED = {"H01", "H02", "S03"} # rows that no calibrated key moves
COUNTS = {"H03", "S04"}         # rows whose key is a small integer

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

    def part(self, value):
        """The part of the range below a value, on the range's scale."""
        if self.powers or (self.least > 0 and self.most >= 4 * self.least):
            return math.log(value / self.least) / math.log(self.most / self.least)
        return (value - self.least) / (self.most - self.least)

    def grid(self):
        """Values of the range at which its effects are measured."""
        if not self.powers:
            return [self.least, self.most]
        return [self.least * 2 ** i for i in range(int(math.log2(self.most / self.least) + 0.5) + 1)]

    def at(self, part):
        """The value at a part of the range, 0 to 1."""
        if self.powers:
            steps = int(math.log2(self.most / self.least) + 0.5) + 1
            return self.least * 2 ** min(int(part * steps), steps - 1)
        value = self.between(part)
        pages = self.unit == "B" and self.least % 4096 == 0 and self.value % 4096 == 0
        return int(value / 4096 + 0.5) * 4096 if pages else value

    def between(self, part):
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
    used = set(values)
    while True: # `check` says some mistakes at a time
        words = [word for path in used for word in ("--set", f"presets.{path}={values[path]}")]
        said = subprocess.run([tcasim, "check", HERE / scenario, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        unused = set(re.findall(r"--set presets\.(\S+?)=.*: no preset of the scenario", said))
        if not unused:
            return used
        used -= unused


Row = collections.namedtuple("Row", "simulated published error excess")


def row_of(simulated, published):
    """published: as written, half a unit of its last digit is rounding. error: in per cent, less what rounding may hide;
    excess: what the simulated value is too much, or too little (negative), to hold."""
    decimals, number = len(published.partition(".")[2]), float(published)
    half = 0.5 / 10 ** decimals
    room = number * HOLDS / 100 + half
    excess = simulated - min(max(simulated, number - room), number + room)
    return Row(simulated, published, max(0, 100 * (abs(simulated - number) - half) / number), excess)


def rows_of(tcasim, scenario, values):
    """{name: Row} with these values of presets; the second value of a row is named like H01', and so on. {}: no run."""
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        words = [tcasim, "run", HERE / scenario, "--quiet", "--jobs", "1", "--out", folder]
        if "ha-pacs" in (HERE / scenario).read_text():
            words += ["--set", "fidelity=twin"]
        for path, value in values.items():
            if path in used_by(tcasim, scenario):
                words += ["--set", f"presets.{path}={value}"]
        if subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            return {}
        with open(pathlib.Path(folder) / "compare.csv", newline="") as table:
            for line in csv.DictReader(table):
                name = line["id"]
                while name in rows:
                    name += "'"
                rows[name] = row_of(float(line["simulated"]), line["published"])
    return rows


def all_rows(tcasim, values):
    rows = {}
    for scenario in CALIBRATED:
        if not values or set(values) & used_by(tcasim, scenario):
            rows |= rows_of(tcasim, scenario, values)
    return rows


def calibrated():
    return [entry for entries in CALIBRATED.values() for entry in entries]


def changes(nominal, rows, step=1.0):
    return {name: (row.simulated - nominal[name].simulated) / step for name, row in rows.items()}


def wanted(row, nominal):
    """What a row is solved to: no count gives exactly the value that it has with the presets as they are."""
    return float(nominal[row].published) if row in COUNTS else nominal[row].simulated


def slopes(tcasim, values, nominal):
    """{row that sets keys: {row: what it changes for a unit of these keys}}."""
    found = {}
    for keys, row, *_ in calibrated():
        value, unit = amount(values[keys[0]])
        step = 1.0 if row in COUNTS else max(4.0, 0.1 * value)
        changed = {key: written(value + step, unit) for key in keys}
        found[row] = changes(nominal, all_rows(tcasim, changed), step)
    return found


class Effects:
    """What each value alone changes: a first look at a draw."""

    def __init__(self, tcasim, ranges, values, nominal, slope, pool):
        self.values, self.nominal, self.slope = values, nominal, slope
        solved = {key for keys, *_ in calibrated() for key in keys}
        self.ranges = [one for one in ranges if one.path not in solved]
        asked = [(one, value) for one in self.ranges for value in one.grid() if value != one.value]
        rows = pool.map(lambda ask: all_rows(tcasim, {ask[0].path: written(ask[1], ask[0].unit)}), asked)
        self.known = {one.path: [(one.part(one.value), {})] for one in self.ranges}
        for (one, value), changed in zip(asked, rows):
            self.known[one.path].append((one.part(value), changes(nominal, changed)))
        for known in self.known.values():
            known.sort(key=lambda at: at[0])

    def may_hold(self, draw):
        rows = {name: row.simulated for name, row in self.nominal.items()}
        for one in self.ranges:
            part = one.part(amount(draw[one.path])[0])
            for (below, less), (above, more) in itertools.pairwise(self.known[one.path]):
                if below <= part <= above:
                    share = (part - below) / (above - below)
                    for name in less.keys() | more.keys():
                        rows[name] += (1 - share) * less.get(name, 0) + share * more.get(name, 0)
                    break
        for keys, row, least, most in calibrated():
            value = amount(self.values[keys[0]])[0]
            by = (wanted(row, self.nominal) - rows[row]) / self.slope[row][row]
            by = min(max(by, least - value), most - value)
            for name, change in self.slope[row].items():
                rows[name] += by * change
        return all(row_of(rows[name], row.published).error <= SLACK * HOLDS for name, row in self.nominal.items())


def secant(before, now, slope):
    """The slope between two points of a row, if it is like the one with the presets as they are."""
    if before is None or before[0] == now[0]:
        return slope
    between = (now[1] - before[1]) / (now[0] - before[0])
    return between if 0.1 < between / slope < 10 else slope


def shift(of, rows, slope):
    """By how much a row that is solved must be less, so that all that its keys move hold; 0 if nothing helps."""
    moved = [row.excess for name, row in rows.items() if slope[of].get(name, 0) / slope[of][of] > 0.3]
    high, low = max(moved), min(moved)
    return 1.1 * (high if low >= 0 else low if high <= 0 else 0)


def solve(tcasim, scenario, draw, values, nominal, slope):
    """({key: value} of the scenario's calibrated keys, None), or (None, a row that does not hold)."""
    entries = CALIBRATED[scenario]
    solved = {key: amount(values[key]) for keys, *_ in entries for key in keys}
    target = {row: wanted(row, nominal) for _, row, *_ in entries}
    held, wrong, before, points = None, None, [], dict.fromkeys(target)
    for _ in range(ROUNDS):
        given = {key: written(*value) for key, value in solved.items()}
        if given in before:
            break
        before.append(given)
        rows = rows_of(tcasim, scenario, draw | given)
        wrong = [name for name, row in rows.items() if row.error > HOLDS]
        held = held if wrong or not rows else given
        if not rows or UNMOVED & set(wrong):
            break
        close = all(row in COUNTS or abs(rows[row].simulated - target[row]) < CLOSE * target[row] for row in target)
        if close and not wrong:
            break
        for keys, row, least, most in entries:
            if row in COUNTS and rows[row].excess == 0:
                continue
            target[row] -= shift(row, rows, slope) if close and row not in COUNTS else 0
            value = solved[keys[0]][0]
            steep = secant(points[row], (value, rows[row].simulated), slope[row][row])
            points[row] = (value, rows[row].simulated)
            by = (target[row] - rows[row].simulated) / steep
            for key in keys:
                solved[key] = (min(max(solved[key][0] + by, least), most), solved[key][1])
    return (held, None) if held else (None, (wrong or [scenario])[0])


def complete(tcasim, draw, values, nominal, slope):
    """(the draw with its calibrated keys, None), or (None, the row that does not hold)."""
    for scenario in CALIBRATED:
        solved, row = solve(tcasim, scenario, draw, values, nominal, slope)
        if solved is None:
            return None, row
        draw = draw | solved
    return draw, None


def check(tcasim, count, ranges, values):
    """What is wrong with the table."""
    with open(TABLE, newline="") as table:
        draws = list(csv.DictReader(table))
    solved = {key for keys, *_ in calibrated() for key in keys}
    paths = {one.path for one in ranges} | solved
    for path in sorted(paths ^ set(draws[0])):
        yield f"{path}: {'is no column' if path in paths else 'has no range'}"
    for number, draw in enumerate(draws, 1):
        for one in ranges:
            at = amount(draw.get(one.path, "0"))[0]
            if one.path not in solved and not one.least * 0.999 <= at <= one.most * 1.001:
                yield f"draw {number}: {one.path} is {draw.get(one.path)}"
    for number, draw in enumerate(draws[:count], 1):
        for scenario in CALIBRATED:
            for name, row in rows_of(tcasim, scenario, draw).items():
                if row.error > HOLDS:
                    yield f"draw {number}: {name} is {row.error:.1f} % from what rounds to the published value"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tcasim")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--check", type=int)
    options = parser.parse_args()
    ranges, values = presets(options.tcasim)
    if options.check is not None:
        wrong = list(check(options.tcasim, options.check, ranges, values))
        print("\n".join(wrong))
        return 1 if wrong else 0
    nominal = all_rows(options.tcasim, {})
    slope = slopes(options.tcasim, values, nominal)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        effects = Effects(options.tcasim, ranges, values, nominal, slope, pool)
        kept, missed, tried = [], collections.Counter(), 0
        for cube in itertools.count(options.seed):
            drawn = [draw for draw in hypercube(ranges, CANDIDATES, cube) if effects.may_hold(draw)]
            for draw, row in pool.map(lambda draw: complete(options.tcasim, draw, values, nominal, slope), drawn):
                tried += 1
                missed[row] += 1
                kept += [draw] if draw is not None and len(kept) < options.draws else []
                print(f"\r{len(kept)} of {tried} draws hold", end="", file=sys.stderr, flush=True)
            if not kept:
                continue
            with open(TABLE, "w", newline="") as out:
                table = csv.writer(out, lineterminator="\n")
                table.writerow(kept[0])
                table.writerows(draw.values() for draw in kept)
            if len(kept) == options.draws:
                break
    del missed[None]
    print(f"\n{len(kept)} of {tried} draws hold; the others miss " +
          ", ".join(f"{row} {count}" for row, count in missed.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
