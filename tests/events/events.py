#!/usr/bin/env python3
"""Checks trace events (JSON) against the Trace Event Format, as far as tcasim uses it: phases X, M, s, t, f and C.

events.py FILE.json...                      checks files
events.py --refuses                         every rule refuses a file that breaks it
events.py --run OUT.json [--needs PHASES] PROGRAM ARGUMENT...
                                            runs the program, which writes OUT.json, and checks it; it must have events
                                            of these phases"""
import copy
import json
import os
import subprocess
import sys
from decimal import Decimal

REQUIRED = {'X': ('name', 'cat', 'ts', 'dur', 'pid', 'tid'), 'M': ('name', 'pid', 'tid', 'args'),
            's': ('name', 'cat', 'id', 'ts', 'pid', 'tid'), 't': ('name', 'cat', 'id', 'ts', 'pid', 'tid'),
            'f': ('name', 'cat', 'id', 'ts', 'pid', 'tid'), 'C': ('name', 'ts', 'pid', 'args')}
METADATA = {'process_name': 'name', 'thread_name': 'name', 'process_sort_index': 'sort_index', 'thread_sort_index': 'sort_index'}
KINDS = {'name': str, 'cat': str, 'ts': Decimal, 'dur': Decimal, 'pid': int, 'tid': int, 'id': int, 'args': dict}


def number(value):
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def members(events):
    for i, event in enumerate(events):
        phase = event.get('ph')
        if phase not in REQUIRED:
            yield f'event {i}: phase {phase!r}'
            continue
        for name in REQUIRED[phase]:
            value = event.get(name)
            right = number(value) if KINDS[name] is Decimal else isinstance(value, KINDS[name]) and not isinstance(value, bool)
            if not right:
                yield f'event {i} ({phase}): {name} is {value!r}'
        if phase == 'M' and METADATA.get(event.get('name')) not in event.get('args', {}):
            yield f'event {i} (M): {event.get("name")!r} with {event.get("args")!r}'
        if phase == 'C' and (not event.get('args') or not all(number(value) for value in event['args'].values())):
            yield f'event {i} (C): a series is no number: {event.get("args")!r}'
        if phase in 'XC' and number(event.get('ts')) and (event['ts'] < 0 or event.get('dur', 0) < 0):
            yield f'event {i} ({phase}): a negative time'
        if phase == 'X' and Decimal(event['ts']).as_tuple().exponent != -6:
            yield f'event {i} (X): {event["ts"]} has no picoseconds'


def order(events):
    last = None
    for i, event in enumerate(events):
        if event['ph'] == 'M':
            continue
        if last is not None and event['ts'] < last:
            yield f'event {i}: {event["ts"]} after {last}'
        last = event['ts']


def names(events):
    processes = {event['pid'] for event in events if event['ph'] == 'M' and event['name'] == 'process_name'}
    threads = {(event['pid'], event['tid']) for event in events if event['ph'] == 'M' and event['name'] == 'thread_name'}
    named = [event['args']['name'] for event in events if event['ph'] == 'M' and event['name'] == 'process_name']
    if len(named) != len(set(named)):
        yield 'two processes have one name'
    for i, event in enumerate(events):
        if event['pid'] not in processes:
            yield f'event {i}: process {event["pid"]} has no name'
        if 'tid' in event and (event['pid'], event['tid']) not in threads:
            yield f'event {i}: thread {event["tid"]} has no name'


# Each flow begins once, ends once, later or at the same time, with the same name and category; its points are on slices.
def flows(events):
    of = {}
    for event in events:
        if event['ph'] in 'stf':
            of.setdefault((event['name'], event['cat'], event['id']), []).append(event)
    slices = {}
    for event in events:
        if event['ph'] == 'X':
            slices.setdefault((event['pid'], event['tid']), []).append((event['ts'], event['ts'] + event['dur']))
    for key, points in of.items():
        phases = ''.join(point['ph'] for point in points)
        if phases[0] != 's' or phases[-1] != 'f' or set(phases[1:-1]) - {'t'}:
            yield f'flow {key[2]}: phases {phases}'
        if any(a['ts'] > b['ts'] for a, b in zip(points, points[1:])):
            yield f'flow {key[2]}: its times decrease'
        for point in points:
            lane = slices.get((point['pid'], point['tid']), [])
            if not any(begin <= point['ts'] <= end for begin, end in near(lane, point['ts'])):
                yield f'flow {key[2]}: no slice at {point["ts"]}'


# The slices of a lane, which are in the order of time, that may contain an instant: they do not overlap.
def near(lane, ts):
    low, high = 0, len(lane)
    while low < high:
        middle = (low + high) // 2
        if lane[middle][1] < ts:
            low = middle + 1
        else:
            high = middle
    return lane[low:low + 1]


def overlaps(events):
    ends = {}
    for i, event in enumerate(events):
        if event['ph'] == 'X':
            lane = (event['pid'], event['tid'])
            if lane in ends and event['ts'] < ends[lane]:
                yield f'event {i}: begins at {event["ts"]}, before the slice before it ends on its thread, at {ends[lane]}'
            ends[lane] = event['ts'] + event['dur']


def mistakes(document):
    if not isinstance(document, dict) or not isinstance(document.get('traceEvents'), list):
        return ['no object with traceEvents']
    if document.get('displayTimeUnit') not in ('ms', 'ns'):
        return [f'displayTimeUnit is {document.get("displayTimeUnit")!r}']
    events = document['traceEvents']
    found = list(members(events))
    for rule in (order, names, flows, overlaps, causes) if not found else ():
        found += rule(events)
    return found


# tcasim's own: records have numbers and causes, by process name up to ": " (the series). No record follows from itself, or
# from one that begins after it ends.
def causes(events):
    series = {event['pid']: event['args']['name'].split(': ')[0] for event in events if event['ph'] == 'M' and event['name'] == 'process_name'}
    records = {(series[event['pid']], event['args']['number']): event for event in events
               if event['ph'] == 'X' and event.get('args', {}).get('number')}
    known = {}
    for key in records:
        way = []
        while key in records and key not in known:
            known[key] = False  # on the way
            way.append(key)
            cause = (key[0], records[key]['args'].get('cause'))
            if cause in records and records[cause]['ts'] > records[key]['ts'] + records[key]['dur']:
                yield f'record {key[1]} follows from {cause[1]}, which begins after it ends'
            key = cause
        if known.get(key) is False:
            yield f'record {key[1]} follows from itself'
        known.update(dict.fromkeys(way, True))


def read(path):
    with open(path) as file:
        return json.load(file, parse_float=Decimal)


def check(path, needs=''):
    document = read(path)
    found = mistakes(document)
    counts = {phase: sum(event.get('ph') == phase for event in document['traceEvents']) for phase in REQUIRED} if not found else {}
    found += [f'no event of phase {phase}' for phase in needs if not found and counts[phase] == 0]
    for mistake in found[:20]:
        print(f'{path}: {mistake}')
    if not found:
        print(f'{path}: ' + ', '.join(f'{phase} {count}' for phase, count in counts.items()))
    return not found


# --- each rule refuses what breaks it -------------------------------------------------------------------------------

def event(phase, ts, **more):
    return {'ph': phase, 'ts': Decimal(ts).quantize(Decimal('0.000001')), 'pid': 1, 'tid': 1, **more}


GOOD = {'displayTimeUnit': 'ns', 'traceEvents': [
    event('M', 0, name='process_name', args={'name': 'node0'}), event('M', 0, name='thread_name', args={'name': 'link'}),
    event('X', 1, name='sent', cat='tlp', dur=Decimal('1.000000')), event('C', 1, name='in flight', args={'packets': 1}),
    event('X', 2, name='received', cat='tlp', dur=Decimal('0.000000')), event('s', 2, name='cause', cat='cause', id=1),
    event('t', 2, name='cause', cat='cause', id=1), event('f', 2, name='cause', cat='cause', id=1, bp='e')]}


def spoilt(change):
    document = copy.deepcopy(GOOD)
    change(document['traceEvents'])
    return document


SPOILT = {
    'a phase that is not used': lambda events: events[2].update(ph='B'), 'no dur': lambda events: events[2].pop('dur'),
    'a pid that is a text': lambda events: events[2].update(pid='node0'), 'no ts': lambda events: events[3].pop('ts'),
    'a value that is a text': lambda events: events[3].update(args={'packets': '1'}), 'no id': lambda events: events[5].pop('id'),
    'times that decrease': lambda events: events[2].update(ts=Decimal('3.000000')),
    'a rounded time': lambda events: events[2].update(ts=Decimal('1.0')),
    'a process without a name': lambda events: events.pop(0), 'a thread without a name': lambda events: events.pop(1),
    'a flow without an end': lambda events: events.pop(7), 'a flow without a begin': lambda events: events.pop(5),
    'a flow of two names': lambda events: events[7].update(name='other'),
    'a flow that ends twice': lambda events: events.append(dict(events[7])),
    'a flow beside slices': lambda events: events[7].update(ts=Decimal('5.000000')),
    'slices that overlap': lambda events: events[2].update(dur=Decimal('1.500000')),
    'a record that follows from itself': lambda events: [events[2].update(args={'number': 1, 'cause': 2}), events[4].update(args={'number': 2, 'cause': 1})],
    'a record that follows from a later one': lambda events: [events[2].update(args={'number': 1, 'cause': 2}, dur=Decimal('0.500000')), events[4].update(args={'number': 2})],
    'metadata without a name': lambda events: events[0].update(args={})}


def refuses():
    good = mistakes(GOOD) == [] or print('the good one is refused:', mistakes(GOOD))
    for what, change in SPOILT.items():
        if not mistakes(spoilt(change)):
            print(f'{what}: accepted')
            good = False
    return good


def run(path, words):
    needs = words[1] if words[0] == '--needs' else ''
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        os.remove(path)
    subprocess.run(words[2:] if needs else words, check=True, stdout=subprocess.DEVNULL, cwd=os.path.dirname(path))
    return check(path, needs)


def main(words):
    if words[:1] == ['--refuses']:
        return refuses()
    if words[:1] == ['--run']:
        return run(words[1], words[2:])
    return len(words) > 0 and all([check(path) for path in words])


sys.exit(0 if main(sys.argv[1:]) else 1)
