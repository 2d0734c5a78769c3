#!/usr/bin/env python3
"""rules.py [--draw N] [--seed K] [--since REVISION] [--suite] [--jobs N] [ROOM | FILE ...]: which changes by rule
(generate.py) do the tests notice?

One build holds all changes: where one is made, the program asks whether it is the one that TCASIM_MUTANT names
(question.h). Each test runs once without a change and notes which of them it asked for; a change is then tried by the
tests that asked for it, the most particular ones first, until one fails: the change is noticed. Tests are those that
*.mutants names for the rooms of the changes; with --suite all of the suite that are not `long`.

A change that no test asked for has SURVIVED, as one that none of them noticed. The exit status is 1 if more than one
in twenty survived. Changes that nobody can notice stand in equivalent.txt.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import generate
from mutate import (BUILD_SECONDS, Broken, Copy, HERE, SKIPPED, SOURCE, SURVIVORS_PER_100, TIMES_SLOWER, command,
                    mutants_of_all_rooms, revision_count)

LEFT_OUT = {"long", "fresh", "rtl"}
SECONDS = 60     # of tests for one change
BYTES = 1 << 16  # MUTANTS_MAX of question.h

Test = collections.namedtuple("Test", "name words folder environment seconds skipped fails passes")


# --- one build with all changes ---------------------------------------------------------------------------------------


class Questions(Copy):
    """A copy of the tree in which each change is a question. The compiler refuses some: a constant cannot ask."""

    def __init__(self, changes):
        self.refused = set()
        self.of_file = collections.defaultdict(list)
        for number, change in enumerate(changes):
            self.of_file[change.file].append((number, change))
        # As in the sanitized tests, an index behind the end of an array ends the program.
        super().__init__("rules", "-DTCASIM_WERROR=OFF",
                         "-DCMAKE_C_FLAGS=-fsanitize=bounds -fsanitize-undefined-trap-on-error")

    def held(self, name, data):
        asked = [(number, change) for number, change in self.of_file[name] if number not in self.refused]
        if not asked:
            return data
        head = f'#include "{HERE / "question.h"}"\n#line 1 "{name}"\n'
        return (head + generate.with_questions(data.decode(), asked)).encode()

    def build(self):
        while True:
            words = ["ninja", "-C", str(self.folder), "-k", "0"]
            status, output = command(words, self.root, BUILD_SECONDS)
            if status == 0:
                return
            errors = re.findall(r"^(\S+?):(\d+):(?:\d+:)? error:", output, re.M)
            before = len(self.refused)
            for name, line in errors:
                for number, change in self.of_file[name]:
                    lines = (SOURCE / name).read_text()[change.start:change.end].count("\n")
                    if change.line <= int(line) <= change.line + lines:
                        self.refused.add(number)
            if len(self.refused) == before:
                raise Broken(f"the changed tree does not build:\n{output[-3000:]}")
            self.refresh()


# --- tests ------------------------------------------------------------------------------------------------------------


def tests_of(folder):
    """All tests of a build folder that are neither long nor alone on the machine."""
    listed = subprocess.run(["ctest", "--show-only=json-v1"], cwd=folder, stdout=subprocess.PIPE, check=True).stdout
    for test in json.loads(listed)["tests"]:
        properties = {one["name"]: one["value"] for one in test["properties"]}
        if "command" not in test or LEFT_OUT & set(properties.get("LABELS", [])) or properties.get("RUN_SERIAL"):
            continue
        environment = dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", []))
        yield Test(test["name"], test["command"], properties["WORKING_DIRECTORY"], environment,
                   properties.get("TIMEOUT", 300), properties.get("SKIP_RETURN_CODE"),
                   properties.get("FAIL_REGULAR_EXPRESSION", []), properties.get("PASS_REGULAR_EXPRESSION", []))


def is_of(test, lists):
    """Whether a test is named by the words of *.mutants."""
    for word in lists:
        kind, _, pattern = word.rpartition(":")
        if re.search(pattern, test.name) if kind else os.path.basename(test.words[0]) == word:
            return True
    return False


def passes(test, seconds, **environment):
    status, output = command(test.words, test.folder, seconds, {**test.environment, **environment})
    if test.passes:
        return any(re.search(pattern, output) for pattern in test.passes)
    return status in (0, test.skipped) and not any(re.search(pattern, output) for pattern in test.fails)


def asked_by(test):
    """(seconds, numbers) of a test without a change; None if it fails."""
    with tempfile.NamedTemporaryFile(prefix="memfd:tcasim-") as notes:  # no memory that programs share (mappings.c)
        notes.truncate(BYTES)
        begin = time.monotonic()
        passed = passes(test, test.seconds, TCASIM_MUTANTS_ASKED=notes.name)
        seconds = time.monotonic() - begin
        noted = notes.read()
    return (seconds, {number for number, asked in enumerate(noted) if asked}) if passed else None


# --- the trial --------------------------------------------------------------------------------------------------------


def judge(number, users):
    """(who noticed the change, how many tests were tried)."""
    spent = 0
    for tried, (test, seconds) in enumerate(users, 1):
        if spent > SECONDS:
            return None, tried - 1
        if not passes(test, min(test.seconds, 20 + TIMES_SLOWER * seconds), TCASIM_MUTANT=str(number)):
            return test.name, tried
        spent += seconds
    return None, len(users)


def trial(changes, drawn, tests, jobs):
    """The changes of `drawn` that survived."""
    survived = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        asked = list(zip(tests, pool.map(asked_by, tests)))
        for test, notes in asked:
            if notes is None:
                print(f"left out: {test.name} fails without a change", flush=True)
        asked = [(test, *notes) for test, notes in asked if notes]

        def one(number):
            users = sorted((len(numbers), seconds, test.name, test) for test, seconds, numbers in asked if number in numbers)
            return number, len(users), *judge(number, [(test, seconds) for _, seconds, _, test in users])

        for number, users, noticed, tried in pool.map(one, drawn):
            change = changes[number]
            where = f"{change.file}:{change.line}: {change.sentence}"
            print(f"noticed  {where} ({noticed})" if noticed else f"SURVIVED {where} ({tried} of {users} tests)", flush=True)
            if not noticed:
                survived.append(change)
    return survived


def chosen(options):
    """(all changes that a build holds, the numbers of those that may be drawn, the tests of each room as *.mutants has them)."""
    lists = {mutant.room: mutant.tests for mutant in mutants_of_all_rooms()}
    listed = subprocess.run(["git", "ls-files"], cwd=SOURCE, stdout=subprocess.PIPE, text=True).stdout.split()
    names = [name for name in listed if generate.is_of_a_room(name)]
    changes = [change for name in names for change in generate.changes(name, (SOURCE / name).read_text())]
    wanted = set(names)
    if options.since:
        words = ["git", "diff", "--name-only", options.since, "--"]
        wanted &= set(subprocess.run(words, cwd=SOURCE, stdout=subprocess.PIPE, text=True).stdout.split())
    if options.names:
        wanted = {name for name in wanted if any(name == one or name.startswith(one + "/") for one in options.names)}
    known = generate.equivalents()
    may = [number for number, change in enumerate(changes) if change.file in wanted and
           (change.file, change.sentence) not in known]
    return changes, may, lists


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", type=int, metavar="N", help="N of them at random (default: all)")
    parser.add_argument("--seed", type=int, default=revision_count(), help="which ones (default: the number of commits)")
    parser.add_argument("--since", metavar="REVISION", help="only files changed since then")
    parser.add_argument("--suite", action="store_true", help="all tests, not only those that *.mutants names")
    parser.add_argument("--jobs", type=int, default=2, help="tests side by side (default: 2)")
    parser.add_argument("names", nargs="*", metavar="ROOM | FILE", help="default: all that generate.py knows")
    options = parser.parse_args()
    if not (SOURCE / ".git").exists():
        print("SKIPPED: not a checkout, whose files git could list")
        return SKIPPED
    changes, may, lists = chosen(options)
    if not may:
        print("no file of these rooms has changed")
        return 0
    copy = Questions(changes)
    copy.build()
    may = [number for number in may if number not in copy.refused]
    drawn = may if options.draw is None else random.Random(options.seed).sample(may, min(options.draw, len(may)))
    near = {word for room, words in lists.items() for word in words
            if any(changes[number].file.startswith(room + "/") for number in drawn)}
    tests = [test for test in tests_of(copy.folder) if options.suite or is_of(test, near)]
    print(f"{len(drawn)} of {len(may)} changes, {len(tests)} tests", flush=True)
    survived = trial(changes, drawn, tests, options.jobs)
    print(f"{len(drawn) - len(survived)} of {len(drawn)} noticed ({100 - 100 * len(survived) / len(drawn):.1f} %)")
    return 1 if 100 * len(survived) > SURVIVORS_PER_100 * len(drawn) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as broken:
        sys.exit(f"FAILED: {broken}")
