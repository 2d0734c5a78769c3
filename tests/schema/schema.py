#!/usr/bin/python3
"""schema.py PROGRAM SCENARIOS: the JSON Schema of scenarios, by an independent validator: every scenario of the tree fits
it, and scenarios with mistakes that a schema can tell do not. Status 77: no validator (Debian: python3-jsonschema,
python3-yaml)."""
import glob
import json
import os
import subprocess
import sys

try:
    import yaml
    from jsonschema import Draft202012Validator
except ImportError as missing:
    print(missing)
    sys.exit(77)

# Not scenarios: recorded numbers, and calibrations.
OTHERS = ('attached/ci/baseline.yaml', 'calibrate/')
# Of scenarios/invalid: a wrong kind of value, an unknown name, a number beyond its range.
MISTAKES = {
    'an unknown key': 'title: t\nnods: []\n',
    'an unknown key of a part': 'nodes: [{name: a, host: {pol: 1 ns}}]\n',
    'a quantity without its unit': 'nodes: [{name: a, host: {poll: 20}}]\n',
    'a unit of another quantity': 'nodes: [{name: a, host: {poll: 20 KiB}}]\n',
    'a number beyond its range': 'nodes: [{name: a, board: {dmac_read_tags: 33}}]\n',
    'a list where a mapping belongs': 'nodes: [{name: a, host: []}]\n',
    'a workload that does not exist': 'runs: [{series: a, workload: ping, node: a}]\n',
    'a single value where a list belongs': 'nodes: a\n',
}


def main():
    program, folder = sys.argv[1:]
    schema = json.loads(subprocess.run([program, 'schema'], check=True, capture_output=True, text=True).stdout)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    wrong = 0
    files = [path for path in sorted(glob.glob(folder + '/**/*.yaml', recursive=True))
             if '/invalid/' not in path and not os.path.relpath(path, folder).startswith(OTHERS)]
    assert len(files) > 50, files
    for path in files:
        with open(path) as file:
            for error in validator.iter_errors(yaml.safe_load(file)):
                print(f'{path}: {error.json_path}: {error.message[:200]}')
                wrong += 1
    for what, text in MISTAKES.items():
        if validator.is_valid(yaml.safe_load(text)):
            print(f'accepted: {what}')
            wrong += 1
    refused = 0
    for path in sorted(glob.glob(folder + '/invalid/*.yaml')):
        try:
            with open(path) as file:
                refused += not validator.is_valid(yaml.safe_load(file))
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
            refused += 1
    print(f'{len(files)} scenarios fit, {refused} of scenarios/invalid do not')
    return 1 if wrong or refused < 20 else 0


sys.exit(main())
