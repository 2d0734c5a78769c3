#!/usr/bin/env python3
"""comparisons.py SOURCE: no EXPECT_TRUE, EXPECT_FALSE or ASSERT_ of these in the tests holds a comparison.

Their failure would not say what was compared. EXPECT_EQ, _LT, _NULL, _STREQ and the like print both sides
(tests/shim/test.h). No EXPECT_EQ compares the result of strcmp, memcmp or strstr, or a comparison with true.
"""
import pathlib
import re
import sys

# A literal or a comment: nothing in them counts.
IGNORED = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|//[^\n]*|/\*.*?\*/', re.S)
CALL = re.compile(r"\b(?:EXPECT|ASSERT)_(TRUE|FALSE|EQ|NE)\(")
COMPARISON = re.compile(r"[=!<>]=|(?<![<-])<(?!<)|(?<![->])>(?!>)")
HIDDEN = re.compile(r"\b(?:strcmp|memcmp|strstr)\(")
TRUTH = re.compile(r", (?:true|false)$")


def blanked(text):
    return IGNORED.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def arguments(code, begin):
    depth, end = 1, begin
    while depth > 0:
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        end += 1
    return code[begin:end - 1]


def mistakes(path):
    text = path.read_text()
    code = blanked(text)
    for call in CALL.finditer(code):
        if re.search(r"#\s*define\s+$", code[:call.start()]):
            continue
        inside = " ".join(arguments(code, call.end()).split())
        is_truth = call.group(1) in ("TRUE", "FALSE") or TRUTH.search(inside)
        if (COMPARISON if is_truth else HIDDEN).search(inside):
            line = code.count("\n", 0, call.start()) + 1
            yield f"{path}:{line}: {call.group()}{inside}) does not print what it compares"


def main():
    tests = pathlib.Path(sys.argv[1]) / "tests"
    paths = sorted(path for ending in ("c", "h") for path in tests.rglob(f"*.{ending}"))
    found = [mistake for path in paths for mistake in mistakes(path)]
    if found or not paths:
        sys.exit("\n".join(["FAILED"] + found))
    print(f"{len(paths)} files")


main()
