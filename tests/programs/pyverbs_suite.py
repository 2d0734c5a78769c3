#!/usr/bin/python3
"""rdma-core's own tests on a simulated device: one line a test, sorted, of what became of it.

    pyverbs_suite.py <folder of the tests> <device> [name of a test ...]

A line is the test's name, then `passes`, `skipped: <reason>` or `fails: <last line of why>`. The tests draw lengths and flags
at random: each begins with a seed made from its name, so that it draws the same in each run, alone or with others.
Those of mlx5 and efa are left out, they ask for other devices' own interfaces.

Simulated programs take time in library calls alone. test_resize_cq counts on the interpreter's, which on a machine takes
longer from one call to the next than a datagram to leave: after each request there is a sleep of INTERPRETER_S instead.
"""
import importlib
import os
import random
import sys
import time
import unittest
import zlib

INTERPRETER_S = 10e-6

folder, device = sys.argv[1:3]
wanted = sys.argv[3:]
sys.path.insert(0, os.path.dirname(folder))
sys.path.insert(0, folder)
sys.argv[1:] = ['--dev', device]

from args_parser import parser  # noqa: E402 (of the tests)

parser.parse_args()


class Lines(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.lines = {}

    def say(self, test, what):
        name = test.id().removeprefix('tests.')
        self.lines[name] = what
        print(name, what, sep=' ', file=sys.stderr, flush=True)

    def startTest(self, test):
        random.seed(zlib.crc32(test.id().encode()))
        super().startTest(test)

    def addSuccess(self, test):
        self.say(test, 'passes')

    def addSkip(self, test, reason):
        self.say(test, f'skipped: {reason}')

    def addFailure(self, test, err):
        self.say(test, f'fails: {str(err[1]).splitlines()[-1] if str(err[1]) else err[0].__name__}')

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addFailure(test, err)


def slow_down(utils):
    send = utils.send

    def send_and_go_on(*arguments, **named):
        send(*arguments, **named)
        time.sleep(INTERPRETER_S)

    utils.send = send_and_go_on


def modules():
    for name in sorted(os.listdir(folder)):
        own = name.startswith(('test_mlx5', 'test_efa'))
        if name.startswith('test_') and name.endswith('.py') and not own:
            yield 'tests.' + name.removesuffix('.py')


def main():
    slow_down(importlib.import_module('tests.utils'))
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(['tests.' + name for name in wanted] if wanted else modules())
    for error in loader.errors:
        print(error, file=sys.stderr)
    result = Lines()
    suite.run(result)
    for name in sorted(result.lines):
        print(name, result.lines[name])
    return 2 if loader.errors else 0


sys.exit(main())
