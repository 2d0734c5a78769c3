"""Cases about timelines and causes."""
import csv
import os
import shutil
import time

from selenium.webdriver.common.action_chains import ActionChains

from browser import PATHS, PROGRAMS


def events(page, folder):
    with open(os.path.join(page.folder, folder, 'trace.csv')) as file:
        every = list(csv.DictReader(file))
    return [event for event in every if event['series'] == every[0]['series']]


def ns(ps):
    whole, rest = divmod(int(ps), 1000)
    return f'{whole:,}' + (f'.{rest:03}' if rest else '') + ' ns'


# The timeline of trace.csv; before it stands that of breakdown.csv.
def timeline(page, folder, which=1):
    lanes = page.all('.lanes', page.section(folder))[which]
    canvas = page.one('canvas', lanes)
    page.browser.execute_script('arguments[0].scrollIntoView({block: "center"})', canvas)
    return lanes, canvas


def find(page, lanes, words):
    field = page.one('input[type=search]', lanes)
    field.clear()
    field.send_keys(words)
    return int(page.one('.found', lanes).text.split()[-2])


# Enter in the field selects what is found and shows it in the middle.
def find_next(page, lanes):
    page.one('input[type=search]', lanes).send_keys('\n')


def zoom_in(page, canvas, steps):
    page.browser.execute_script('''
        const box = arguments[0].getBoundingClientRect();
        for (let i = 0; i < arguments[1]; i++) arguments[0].dispatchEvent(new WheelEvent("wheel", {deltaY: -1, clientX: box.left + (210 + box.width) / 2, clientY: box.top + 50}));''', canvas, steps)


def arrows(page, canvas):
    time.sleep(0.2)  # it is drawn with the next frame
    return int(canvas.get_attribute('data-arrows'))


# The tip of the record that find_next has put in the middle: looks for it in all lanes.
def tip_of_found(page, canvas, words):
    width, height = canvas.size['width'], canvas.size['height']
    middle = (210 + width) // 2 - width // 2
    for y in range(10, height - 30, 5):
        ActionChains(page.browser).move_to_element_with_offset(canvas, middle, y - height // 2).perform()
        tip = page.one('#tip').text
        if all(word in tip for word in words):
            return tip
    raise AssertionError(f'no tip with {words}')


def a_timeline_finds_and_tells_times(page):
    page.open()
    section = page.section(PATHS)
    canvases = page.all('canvas', section)
    assert len(canvases) == 2  # the critical path, and the events of trace.csv
    lanes, _ = timeline(page, PATHS)
    wanted = sum('mrd' in ' '.join(event.values()).lower() for event in events(page, PATHS))
    assert wanted > 0 and find(page, lanes, 'mrd') == wanted
    page.browser.execute_script('arguments[0].scrollIntoView({block: "center"})', canvases[0])
    width, height = canvases[0].size['width'], canvases[0].size['height']
    ActionChains(page.browser).move_to_element_with_offset(canvases[0], -width // 2 + 222, -height // 2 + 10).perform()
    tip = page.one('#tip').text
    assert 'stores' in tip and 'at 0 ns' in tip or '0 ns to ' in tip, tip


def a_tip_has_exact_times_and_the_cause(page):
    page.open()
    lanes, canvas = timeline(page, PATHS)
    event = next(event for event in events(page, PATHS) if event['point'] == 'tlp_received' and event['kind'] == 'CplD')
    cause = next(one for one in events(page, PATHS) if one['number'] == event['cause'])
    assert find(page, lanes, f'tlp_received tag={event["tag"]} cpld {event["component"]}') >= 1
    find_next(page, lanes)
    page.one(".chain tbody tr:last-child button", lanes).click()
    tip = tip_of_found(page, canvas, (f'tag={event["tag"]}', 'tlp_received'))
    assert f'at {ns(event["time_ps"])}' in tip, tip
    assert f'follows from {cause["component"]}: tlp_sent' in tip and f'{ns(cause["time_ps"])} to {ns(event["time_ps"])}' in tip, tip


def a_record_has_arrows_from_its_causes(page):
    page.open()
    lanes, canvas = timeline(page, PATHS)
    every = {event['number']: event for event in events(page, PATHS)}
    assert find(page, lanes, 'tlp_received cpld') > 0
    find_next(page, lanes)
    assert arrows(page, canvas) > 0
    times = [row.text.split(' ns')[0] for row in page.all('.chain tbody tr', lanes)]
    assert len(times) >= 3, times  # the request, its arrival, the completion, its arrival
    selected = canvas.get_attribute('data-selected')
    event = next(event for event in every.values() if event['point'] == 'tlp_received' and event['kind'] == 'CplD')
    chain = []
    while event:
        chain.append(ns(event['time_ps']).split(' ns')[0])
        if event['point'] == 'tlp_sent' and event['kind'] == 'MRd':
            break
        event = every.get(event['cause'])
    assert selected.startswith('node') and times == chain[::-1], (selected, times, chain)
    ActionChains(page.browser).move_to_element(canvas).send_keys_to_element(canvas, '\ue00c').perform()
    assert canvas.get_attribute('data-selected') == '' and page.all('.chain', lanes) == []


def a_path_has_arrows_along_it(page):
    page.open()
    with open(os.path.join(page.folder, PATHS, 'breakdown.csv')) as file:
        pieces = list(csv.DictReader(file))
    pieces = [piece for piece in pieces if piece['series'] == pieces[0]['series']]
    changes = sum(a['component'] != b['component'] for a, b in zip(pieces, pieces[1:]))
    _, canvas = timeline(page, PATHS, 0)
    assert changes <= arrows(page, canvas) < len(pieces), (changes, arrows(page, canvas), len(pieces))


def a_completion_leads_back_to_the_call_that_posted(page):
    if not shutil.which('ib_send_lat'):
        return
    page.open()
    lanes, canvas = timeline(page, PROGRAMS)
    assert find(page, lanes, 'ibv_poll_cq opcode=recv') >= 20
    find_next(page, lanes)
    chain = [row.text for row in page.all('.chain tbody tr', lanes)]
    every = {event['number']: event for event in events(page, PROGRAMS)}
    for event in every.values():
        passed = set()
        while event and event['number'] not in passed:
            passed.add(event['number'])
            event = every.get(event['cause'])
        assert not event, event  # nothing is in its own past
    words = ('ibv_post_send', 'tlp_sent kind=MWr', 'doorbell', 'ib_sent', 'ib_received', 'completion', 'memory_written', 'ibv_poll_cq')
    places = [next((i for i, row in enumerate(chain) if word in row), None) for word in words]
    assert None not in places and places == sorted(places) and places[0] == 0 and places[-1] == len(chain) - 1, chain
    assert arrows(page, canvas) >= len(chain) - 2
    for scheme in ('light', 'dark'):
        page.browser.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': [{'name': 'prefers-color-scheme', 'value': scheme}]})
        arrows(page, canvas)
        page.browser.save_screenshot(os.path.join(page.folder, f'timeline-{scheme}.png'))


# 30 ms a step on a machine that does nothing else; the fastest of several, and the limit, leave room for one that does.
def a_long_timeline_stays_fluid(page):
    page.open()
    took = page.browser.execute_script('''
        const records = [];
        for (let i = 0; i < 100000; i++) {
          records.push({lane: `node${i % 4}.lane${i % 20}`, begin: i * 100, end: i * 100 + (i % 3) * 40, colour: COLOURS[i % 7], text: `tag=${i % 64}`, cause: null, effects: [], starts: i % 50 === 0});
          if (i > 0) causeSet(records[i], records[i - 1]);
        }
        const node = lanesNode(records, true, null), canvas = node.querySelector("canvas"), lanes = new Lanes(records, true), all = {};
        document.body.append(node);
        function measure(name, steps, step) {
          all[name] = Infinity;
          for (let i = 0; i < steps; i++) {
            const start = performance.now();
            step(i); lanesDraw(lanes, canvas); canvas.getContext("2d").getImageData(0, 0, 1, 1);
            all[name] = Math.min(all[name], performance.now() - start);
          }
        }
        measure("whole", 10, i => lanes.zoom(600, i % 2 ? 0.99 : 1.01));
        measure("move", 10, i => lanes.move(1e5, 0));
        lanes.find(["tag=32"]);
        measure("found", 10, i => lanes.zoom(600, 0.9));
        lanes.find([]);
        lanes.select(records[50049]);
        measure("selected", 10, i => lanes.zoom(600, 0.9));
        measure("zoom", 20, i => lanes.zoom(600, 0.8));
        const start = performance.now();
        for (let i = 0; i < 100; i++) lanes.at(300 + 5 * i, 50);
        all.hover = (performance.now() - start) / 100;
        return all;''')
    print(', '.join(f'{name} {ms:.1f} ms' for name, ms in took.items()))
    assert max(took.values()) < 120, took
    assert page.failures() == [], page.found
