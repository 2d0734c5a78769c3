#!/usr/bin/env python3
"""mutate.py [--jobs N] [--fortieth K] [--list] [ROOM | MUTANT ...]: which small wrong changes do the tests notice?

Each mutant of *.mutants is put into a copy of the tree. The copy is built, and the tests of the mutant's room run, then
those of its neighbours, until one fails: the mutant is noticed. If none fails, it survived. The exit status is 1 if
more than one mutant in twenty survived, or if a mutant no longer applies or builds.

ROOM.mutants begins with its room and the tests that run, in this order:

  // room models/pcie
  // tests tests_pcie                     programs of GoogleTest by their target, or ctest:REGEX, which leaves out
                                          tests with the label `long`; long:REGEX does not
  // neighbours tests_host ctest:^Cli

and then has, for each mutant, a sentence about what is wrong with it, and the change:

  # A completion of an unsupported read is never released.
  == unreleased-unsupported-read models/pcie/root_complex.c
  - text that stands in FILE exactly once
  + what stands there instead

Changes that are made by rule are tried by rules.py.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import queue
import re
import resource
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
SURVIVORS_PER_100 = 5
SKIPPED = 77
# Time is simulated, so the code may be slower: it is built for each mutant, without optimisation across files.
QUICK_BUILD = ["-DCMAKE_BUILD_TYPE=Quick", "-DCMAKE_C_FLAGS_QUICK=-O1 -DNDEBUG", "-DCMAKE_CXX_FLAGS_QUICK=-O1 -DNDEBUG"]
BUILD_SECONDS = 900
TEST_SECONDS = 300  # of one program or one call of ctest, which hangs beyond it
TIMES_SLOWER = 10   # than without the change: a test that takes longer hangs
FILE_BYTES = 8 << 30   # a test makes 4 GiB of the memory of a GPU a file, most of it a hole


class Broken(Exception):
    """A mutant or the tree is not as the data says."""


Mutant = collections.namedtuple("Mutant", "name room file old new sentence tests")


def is_ctest(name):
    return name.startswith(("ctest:", "long:"))


# --- the data ---------------------------------------------------------------------------------------------------------


def header_read(text, word, where):
    found = re.findall(rf"^// {word} (.+)$", text, re.M)
    if len(found) != 1:
        raise Broken(f"{where} has {len(found)} lines '// {word} ...'")
    return found[0].split()


def side(lines, mark):
    return "\n".join(line[2:] for line in lines if line[:1] == mark)


def mutant_read(block, sentence, room, tests, where):
    head, *body = [line for line in block.rstrip().split("\n")]
    words = head.split()
    if len(words) != 2:
        raise Broken(f"{where}: '{head}' is not NAME FILE")
    change = []
    for line in body:
        if line[:1] not in ("-", "+") or line[1:2] not in ("", " "):
            break
        change.append(line)
    old, new = side(change, "-"), side(change, "+")
    if not old or old == new:
        raise Broken(f"{where}: {words[0]} changes nothing")
    return Mutant(words[0], room, words[1], old, new, sentence, tests)


def mutants_read(path):
    text = path.read_text()
    room = header_read(text, "room", path.name)[0]
    tests = header_read(text, "tests", path.name) + header_read(text, "neighbours", path.name)
    blocks = re.split(r"^== ", text, flags=re.M)
    mutants = []
    for before, block in zip(blocks, blocks[1:]):
        sentence = re.findall(r"^# (.*)$", before, re.M)
        if not sentence:
            raise Broken(f"{path.name}: '{block.splitlines()[0]}' has no sentence before it")
        mutants.append(mutant_read(block, sentence[-1], room, tests, path.name))
    return mutants


def mutants_of_all_rooms():
    mutants = [mutant for path in sorted(HERE.glob("*.mutants")) for mutant in mutants_read(path)]
    named = collections.Counter((mutant.room, mutant.name) for mutant in mutants)
    twice = [f"{name} of {room}" for (room, name), count in named.items() if count > 1]
    if twice:
        raise Broken(f"there are two mutants {', '.join(twice)}")
    return mutants


def mutated_text(tree, mutant):
    text = (tree / mutant.file).read_text()
    if text.count(mutant.old) != 1:
        raise Broken(f"the text of {mutant.name} stands {text.count(mutant.old)} times in {mutant.file}")
    return text.replace(mutant.old, mutant.new)


# --- a copy of the tree -----------------------------------------------------------------------------------------------


def limit_resources():
    """A mutant that writes or allocates without end harms no one else. Nodes reserve much address space: no limit there."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    pathlib.Path("/proc/self/oom_score_adj").write_text("1000")


def command(words, cwd, seconds, environment=None):
    """Runs a command and everything that it starts; (status, output), or (None, output) if it took too long."""
    process = subprocess.Popen(words, cwd=cwd, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                               preexec_fn=limit_resources)
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return None, output


def put(path, text):
    if path.read_text() != text:
        path.write_text(text)


class Copy:
    """A scratch tree with its own build, kept from call to call: only what has changed is built again."""

    def __init__(self, name, *settings):
        self.root = SOURCE / "build/mutation" / name
        self.folder = self.root / "build/release"
        self.seconds = {}  # of each test without a change
        self.refresh()
        if not (self.folder / "build.ninja").exists():
            status, output = command(["cmake", "--preset", "release", "-DTCASIM_TESTS=ON", *QUICK_BUILD, *settings], self.root,
                                     BUILD_SECONDS)
            if status != 0:
                raise Broken(f"the copy cannot be configured:\n{output[-3000:]}")

    def held(self, name, data):
        """What the copy of a file holds."""
        return data

    def refresh(self):
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=SOURCE,
                                stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
        wanted = {name for name in listed if name and (SOURCE / name).is_file()}
        for name in wanted:
            source, target = SOURCE / name, self.root / name
            data = self.held(name, source.read_bytes())
            if not target.is_file() or target.read_bytes() != data:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                target.chmod(source.stat().st_mode)
        for folder in (child for child in self.root.iterdir() if child.is_dir() and child.name != "build"):
            for target in folder.rglob("*"):
                if target.is_file() and str(target.relative_to(self.root)) not in wanted:
                    target.unlink()

    def build(self, test):
        """What that test needs. (status, output)"""
        target = "all" if is_ctest(test) else test
        return command(["ninja", "-C", str(self.folder), target], self.root, BUILD_SECONDS)

    def test(self, name, seconds):
        """What failed; None if nothing did."""
        if is_ctest(name):
            kind, _, pattern = name.partition(":")
            left_out = "fresh" if kind == "long" else "long|fresh"
            words = ["ctest", "-R", pattern, "-LE", left_out, "--stop-on-failure", "--no-tests=error"]
            failed = r"^\s*\d+ - (\S+) \((?:Failed|Timeout|SEGFAULT|.*Exception.*|Subprocess.*)\)"
            folder = self.folder
        else:
            folder = self.folder / name.replace("_", "/", 1)
            words = [str(folder / name), "--gtest_fail_fast", "--gtest_brief=1"]
            failed = r"^\[  FAILED  \] (\w+\.\w+)"
        status, output = command(words, folder, seconds)
        if status == 0:
            return None
        found = re.findall(failed, output, re.M)
        reason = "hangs" if status is None else f"ends with {status}"
        return f"{name}: {found[0]}" if found else f"{name} {reason}"

    def measure(self, name):
        """How long a test takes without a change."""
        status, output = self.build(name)
        if status != 0:
            raise Broken(f"the build of the unchanged tree failed:\n{output[-3000:]}")
        begin = time.monotonic()
        failed = self.test(name, TEST_SECONDS)
        if failed:
            raise Broken(f"the unchanged tree fails: {failed}")
        self.seconds[name] = time.monotonic() - begin

    def test_changed(self, mutant, name):
        status, output = self.build(name)
        if status != 0:
            raise Broken(f"{mutant.name} does not build:\n{output[-3000:]}")
        return self.test(name, min(TEST_SECONDS, 20 + TIMES_SLOWER * self.seconds[name]))

    def judge(self, mutant):
        """What noticed the mutant; None if it survived."""
        path = self.root / mutant.file
        original = path.read_text()
        changed = mutated_text(self.root, mutant)
        try:
            for name in mutant.tests:
                if name not in self.seconds:
                    put(path, original)
                    self.measure(name)
                put(path, changed)
                noticed = self.test_changed(mutant, name)
                if noticed:
                    return noticed
            return None
        finally:
            put(path, original)


# --- the trial --------------------------------------------------------------------------------------------------------


def chosen(mutants, options):
    known = {mutant.room for mutant in mutants} | {mutant.name for mutant in mutants}
    for name in options.names:
        if name not in known:
            raise Broken(f"there is neither a room nor a mutant '{name}'")
    if options.names:
        mutants = [mutant for mutant in mutants if {mutant.room, mutant.name} & set(options.names)]
    if options.fortieth is not None:
        mutants = mutants[options.fortieth % 40::40]
    return mutants


def revision_count():
    counted = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=SOURCE, stdout=subprocess.PIPE, text=True)
    return int(counted.stdout or 0)


def trial(mutants, jobs):
    copies = queue.Queue()
    for number in range(min(jobs, len(mutants))):
        copies.put(Copy(str(number)))

    def one(mutant):
        copy = copies.get()
        begin = time.monotonic()
        try:
            noticed = copy.judge(mutant)
            said = f"noticed  {mutant.name} ({noticed})" if noticed else f"SURVIVED {mutant.name}: {mutant.sentence}"
            result = bool(noticed)
        except Broken as broken:
            said, result = f"BROKEN   {mutant.name}: {broken}", None
        finally:
            copies.put(copy)
        print(f"{said}, {time.monotonic() - begin:.0f} s", flush=True)
        return mutant.room, result

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, mutants))


def table_print(results):
    print(f"\n{'room':<28} mutants noticed")
    for room in sorted({room for room, _ in results}):
        mine = [noticed for place, noticed in results if place == room]
        print(f"{room:<28} {len(mine):7} {sum(noticed is True for noticed in mine):7}")
    noticed = sum(result is True for _, result in results)
    print(f"{'all':<28} {len(results):7} {noticed:7}  ({100 * noticed / len(results):.1f} %)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="copies that are worked on side by side (default: 1)")
    parser.add_argument("--fortieth", type=lambda text: revision_count() if text == "of-revision" else int(text),
                        metavar="K", help="every fortieth mutant from the K-th on; of-revision: K is the number of commits")
    parser.add_argument("--list", action="store_true", help="only the names and sentences; checks that each applies")
    parser.add_argument("names", nargs="*", metavar="ROOM | MUTANT", help="all rooms if none is named")
    options = parser.parse_args()
    mutants = chosen(mutants_of_all_rooms(), options)
    if options.list:
        for mutant in mutants:
            mutated_text(SOURCE, mutant)
            print(f"{mutant.room}: {mutant.name}: {mutant.sentence}")
        print(f"{len(mutants)} mutants")
        return 0
    if not (SOURCE / ".git").exists():
        print("SKIPPED: not a checkout, whose files git could list")
        return SKIPPED
    results = trial(mutants, max(options.jobs, 1))
    table_print(results)
    survived = sum(result is False for _, result in results)
    broken = sum(result is None for _, result in results)
    return 1 if broken or 100 * survived > SURVIVORS_PER_100 * len(results) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as broken:
        sys.exit(f"FAILED: {broken}")
