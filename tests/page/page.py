#!/usr/bin/python3
"""page.py PROGRAM FOLDER CASE: the page of `tcasim report` in Chromium. The case `results` makes the results and the page
in the folder, which the others open; `all` is all of them. Status 77: there is no browser, or no Selenium."""
import csv
import os
import shutil
import subprocess
import sys
import time
import traceback

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
except ImportError:
    print('there is no Selenium (Debian: python3-selenium)')
    sys.exit(77)

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIGURE, SWEEP, TABLE, PATHS, PROGRAMS, ODD = 'pingpong', 'sweep', 'table', 'paths', 'programs', "an odd 'one'"


def results(program, folder):
    def run(*words):
        subprocess.run([program, *words], check=True, stdout=subprocess.DEVNULL, cwd=folder)

    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    scenarios = os.path.join(SOURCE, 'scenarios')
    figure = scenarios + '/figures/hanawa2013-fig7-8-pingpong.yaml'
    run('run', figure, '--set', 'fidelity=flow', '--out', FIGURE)
    run('run', figure, '--set', 'fidelity=flow', '--set', 'nodes.*.host.flush_wc=30 ns', '--set', 'expect=[]', '--out', 'other/' + FIGURE)
    run('run', scenarios + '/whatif/outstanding-reads-1-to-32.yaml', '--set', 'fidelity=flow', '--out', SWEEP)
    run('run', scenarios + '/figures/sato2015-table2-atomics.yaml', '--set', 'fidelity=flow', '--out', TABLE)
    run('explain', scenarios + '/smoke/verbs-8b.yaml', '--set', 'fidelity=twin', '--out', PATHS)
    run('run', scenarios + '/smoke/smallest.yaml', '--out', PATHS + '/more', '--trace', PATHS + '/trace.csv', '--trace-causes')
    if shutil.which('ib_send_lat'):
        run('exec', SOURCE + '/tests/dropin/ibsim0.yaml', '--out', PROGRAMS, '--explain', '--trace', 'programs.csv', '--trace-causes',
            '--on', 'node0', 'ib_send_lat -n 20', '--on', 'node1', 'ib_send_lat -n 20 node0')
        os.rename(os.path.join(folder, 'programs.csv'), os.path.join(folder, PROGRAMS, 'trace.csv'))
    odd = {'data.csv': 'series,bytes,latency_us,bandwidth_GBps\n4,8,1.0,0.008\n4,16,2.0,0.008\n  <b>a</b>  b,8,1,0.008\n',
           'trace.csv': 'series,time_ps,component,point,kind\n', 'figure.yaml': '{}\n', 'manifest.yaml': 'runs: {}\n',
           'breakdown.csv': 'series,part,detail,component,begin_ps,end_ps,duration_ps\n7,a,b,c,0,5,5\n'}
    os.makedirs(os.path.join(folder, ODD))
    for name, text in odd.items():
        with open(os.path.join(folder, ODD, name), 'w') as file:
            file.write(text)
    run('report', ODD, FIGURE, 'other/' + FIGURE, SWEEP, TABLE, PATHS, *([PROGRAMS] if shutil.which('ib_send_lat') else []), '--out', 'report.html')


class Page:
    def __init__(self, folder, *arguments):
        options = Options()
        options.binary_location = shutil.which('chromium') or ''
        for argument in ('--headless=new', '--no-sandbox', '--disable-gpu', '--window-size=1280,1400', *arguments):
            options.add_argument(argument)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        self.folder = folder
        self.browser = webdriver.Chrome(options=options)

    def open(self):
        self.browser.get('file://' + os.path.join(self.folder, 'report.html'))
        self.wait(lambda: self.browser.execute_script('return document.documentElement.dataset.ready') == 'true')

    def wait(self, holds):
        end = time.monotonic() + 30
        while not holds():
            assert time.monotonic() < end, 'waited in vain'
            time.sleep(0.05)

    def all(self, selector, within=None):
        return (within or self.browser).find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector, within=None):
        found = self.all(selector, within)
        assert len(found) >= 1, f'no {selector}'
        return found[0]

    def section(self, directory):
        for section in self.all('section'):
            if directory in [code.text for code in self.all('p code', section)]:
                return section
        raise AssertionError(f'no section of {directory}')

    def hover(self, element):
        self.browser.execute_script('arguments[0].scrollIntoView({block: "center"})', element)
        ActionChains(self.browser).move_to_element(element).perform()
        return self.one('#tip').text

    def rows(self, name):
        with open(os.path.join(self.folder, name, 'data.csv')) as file:
            return list(csv.DictReader(file))

    def failures(self):
        self.found = [entry for entry in self.browser.get_log('browser')
                      if entry['level'] in ('SEVERE', 'WARNING') and 'willReadFrequently' not in entry['message']]
        return self.found


def no_script_fails(page):
    page.open()
    for button in page.all('figure button.tool'):
        page.browser.execute_script('arguments[0].click()', button)
    for details in page.all('summary'):
        page.browser.execute_script('arguments[0].click()', details)
    assert len(page.all('figure.interactive svg')) >= 8
    assert page.failures() == [], page.found


def hovering_shows_the_number(page):
    page.open()
    section = page.section(FIGURE)
    figure = page.all('figure.interactive', section)[1]
    checked = 0
    for row in page.rows(FIGURE):
        if row['series'] == 'DMA CPU-GPU' and row['bytes'] in ('4096', '32768', '262144'):
            circle = page.one(f'circle[data-series="{row["series"]}"][data-x="{row["bytes"]}"]', figure)
            tip = page.hover(circle)
            assert row['series'] in tip, tip
            shown = float(tip.split(row['series'] + '\n')[1].split('Bandwidth [GB/s]: ')[1].split('\n')[0])
            assert abs(shown - float(row['bandwidth_GBps'])) <= 1e-5 * float(row['bandwidth_GBps']), (tip, row)
            checked += 1
    assert checked == 3


def published_values_have_the_colour_of_their_curve(page):
    page.open()
    figure = page.all('figure.interactive', page.section(FIGURE))[0]
    cross = page.one('.published[data-id="H08"]', figure)
    circle = page.one('circle[data-series="PIO CPU-CPU"]', figure)
    assert cross.get_attribute('stroke') == circle.get_attribute('stroke')
    assert 'published 0.9 us' in page.hover(page.one('rect', cross))


def the_filter_filters(page):
    page.open()
    table = page.one('#published table')
    every = len(page.all('tbody tr', table))
    page.one('#rows-filter').send_keys('lowest pio')
    shown = [row.text for row in page.all('tbody tr', table)]
    assert 0 < len(shown) < every and all('lowest' in text and 'PIO' in text for text in shown), shown
    page.one('#rows-filter').clear()
    page.browser.execute_script('arguments[0].click()', page.one('#rows-off'))
    for row in page.all('tbody tr', table):
        assert abs(float(page.all('td', row)[5].text.split()[0])) > 15, row.text


def heads_sort_by_their_column(page):
    page.open()
    table = page.one('#published table')
    error = page.all('th', table)[5]
    error.click()
    error.click()
    errors = [abs(float(page.all('td', row)[5].text.split()[0])) for row in page.all('tbody tr', table)
              if page.all('td', row)[5].text]
    assert errors == sorted(errors, reverse=True) and errors[0] > errors[-1], errors


def a_row_opens_its_reason(page):
    page.open()
    row = next(row for row in page.all('#published tbody tr') if row.text.startswith('H15'))
    row.click()
    assert 'A ping-pong of n bytes takes' in page.one('tr.note').text
    row.click()
    assert page.all('tr.note') == []


def a_series_can_be_left_out(page):
    page.open()
    figure = page.all('figure.interactive', page.section(FIGURE))[0]
    before = len(page.all('circle[data-series="PIO CPU-CPU"]', figure))
    page.all('.legend button', figure)[0].click()
    assert before > 0 and page.all('circle[data-series="PIO CPU-CPU"]', figure) == []
    page.all('.legend button', figure)[0].click()
    assert len(page.all('circle[data-series="PIO CPU-CPU"]', figure)) == before


def dragging_zooms_and_a_double_click_shows_the_whole(page):
    page.open()
    figure = page.all('figure.interactive', page.section(FIGURE))[0]
    svg = page.one('svg', figure)
    page.browser.execute_script('arguments[0].scrollIntoView({block: "center"})', svg)
    circle = page.one('circle[data-series="PIO CPU-CPU"]', figure)
    place = circle.get_attribute('cx')
    ActionChains(page.browser).move_to_element_with_offset(svg, -60, -60).click_and_hold().move_by_offset(120, 80).release().perform()
    page.wait(lambda: page.one('circle[data-series="PIO CPU-CPU"]', figure).get_attribute('cx') != place)
    ActionChains(page.browser).double_click(svg).perform()
    page.wait(lambda: page.one('circle[data-series="PIO CPU-CPU"]', figure).get_attribute('cx') == place)


def another_result_stands_beside(page):
    page.open()
    holder = page.section(FIGURE)
    select = page.one('select.beside', holder)
    option = next(option for option in page.all('option', select) if option.text == 'other/' + FIGURE)
    option.click()
    figure = page.all('figure.interactive', holder)[0]
    names = {circle.get_attribute('data-series') for circle in page.all('circle', figure)}
    assert f'PIO CPU-CPU (other/{FIGURE})' in names, names
    own = page.one('circle[data-series="PIO CPU-CPU"]', figure).get_attribute('data-y')
    beside = page.one(f'circle[data-series="PIO CPU-CPU (other/{FIGURE})"]', figure).get_attribute('data-y')
    assert float(beside) < float(own)  # its flush takes 30 ns


def a_sweep_has_curves_and_a_surface(page):
    page.open()
    sweep = page.one('.sweep', page.section(SWEEP))
    rows = page.rows(SWEEP)
    cells = page.all('rect.cell', sweep)
    assert len(cells) == len(rows)
    assert 'dmac_read_tags' in page.hover(cells[3])
    assert len(page.all('circle', page.one('figure.interactive', sweep))) == len(rows)


def a_table_of_one_size_has_bars(page):
    page.open()
    section = page.section(TABLE)
    bars = {bar.get_attribute('data-y') for bar in page.all('rect.bar', section)}
    assert {str(float(row['latency_us'])) for row in page.rows(TABLE)} <= {str(float(bar)) for bar in bars}
    assert len(page.all('.published', section)) >= 2


def a_breakdown_opens_into_its_pieces(page):
    page.open()
    section = page.section(PATHS)
    part = page.one('rect.part', section)
    tip = page.hover(part)
    assert ' ns of ' in tip, tip
    ActionChains(page.browser).click(part).perform()
    with open(os.path.join(page.folder, PATHS, 'breakdown.csv')) as file:
        pieces = list(csv.DictReader(file))
    first = [piece for piece in pieces if piece['series'] == pieces[0]['series'] and piece['part'] == pieces[0]['part']]
    assert len(page.all('.timelines tbody tr', section)) == len(first)


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
    words = ('ibv_post_send', 'tlp_sent kind=MWr', 'doorbell', 'ib_sent', 'ib_received', 'completion', 'memory_written', 'ibv_poll_cq')
    places = [next((i for i, row in enumerate(chain) if word in row), None) for word in words]
    assert None not in places and places == sorted(places) and places[0] == 0 and places[-1] == len(chain) - 1, chain
    assert arrows(page, canvas) >= len(chain) - 2
    for scheme in ('light', 'dark'):
        page.browser.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': [{'name': 'prefers-color-scheme', 'value': scheme}]})
        arrows(page, canvas)
        page.browser.save_screenshot(os.path.join(page.folder, f'timeline-{scheme}.png'))


# 30 ms a step on a machine that does nothing else; the limit leaves room for one that does.
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
          const start = performance.now();
          for (let i = 0; i < steps; i++) { step(i); lanesDraw(lanes, canvas); canvas.getContext("2d").getImageData(0, 0, 1, 1); }
          all[name] = (performance.now() - start) / steps;
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


def without_scripts_there_are_the_pictures(page):
    page.browser.get('file://' + os.path.join(page.folder, 'report.html'))
    images = page.all('main img')
    assert len(images) >= 4 and all(int(image.get_attribute('naturalWidth')) > 0 for image in images)


def nothing_is_loaded_from_elsewhere(page):
    page.open()
    assert page.browser.execute_script('return performance.getEntriesByType("resource").filter(one => !one.name.startsWith("data:")).length') == 0


def both_colour_schemes_can_be_read(page):
    page.open()
    colours = set()
    for scheme in ('light', 'dark'):
        page.browser.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': [{'name': 'prefers-color-scheme', 'value': scheme}]})
        style = page.browser.execute_script('const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]')
        assert style[0] != style[1]
        colours.add(style[1])
        page.browser.save_screenshot(os.path.join(page.folder, scheme + '.png'))
    assert len(colours) == 2
    page.browser.set_window_size(1024, 900)
    assert page.browser.execute_script('return document.documentElement.scrollWidth <= document.documentElement.clientWidth')


def odd_results_leave_the_others_as_they_are(page):
    page.open()
    section = page.section(ODD)
    figure = page.one('figure.interactive', section)
    assert {circle.get_attribute('data-series') for circle in page.all('circle', figure)} == {'4', '  <b>a</b>  b'}
    assert page.all('p.off', section) == [] and page.all('b', section) == []
    assert len(page.all('canvas', section)) == 1 and len(page.all('rect.part', section)) == 1
    assert len(page.all('section')) == (8 if shutil.which('ib_send_lat') else 7) and page.failures() == []


CASES = {case.__name__: case for case in (
    no_script_fails, hovering_shows_the_number, published_values_have_the_colour_of_their_curve, the_filter_filters,
    heads_sort_by_their_column, a_row_opens_its_reason, a_series_can_be_left_out,
    dragging_zooms_and_a_double_click_shows_the_whole, another_result_stands_beside, a_sweep_has_curves_and_a_surface,
    a_table_of_one_size_has_bars, a_breakdown_opens_into_its_pieces, a_timeline_finds_and_tells_times,
    a_tip_has_exact_times_and_the_cause, a_record_has_arrows_from_its_causes, a_path_has_arrows_along_it,
    a_completion_leads_back_to_the_call_that_posted, a_long_timeline_stays_fluid, nothing_is_loaded_from_elsewhere,
    both_colour_schemes_can_be_read, odd_results_leave_the_others_as_they_are)}
CASES_WITHOUT_SCRIPTS = {case.__name__: case for case in (without_scripts_there_are_the_pictures,)}


def fails(page, name, run):
    try:
        page.browser.set_window_size(1280, 1400)
        run(page)
    except Exception:  # of the case or of the browser: the others still run
        traceback.print_exc()
        print(f'FAILED {name}', flush=True)
        return True
    print(f'ok     {name}', flush=True)
    return False


def main():
    program, folder, case = sys.argv[1:]
    if shutil.which('chromium') is None or shutil.which('chromedriver') is None:
        print('there is no browser (Debian: chromium, chromium-driver)')
        return 77
    if case == 'results':
        results(program, folder)
        return 0
    if case == 'all':
        results(program, folder)
    wrong = 0
    for arguments, cases in (([], CASES), (['--blink-settings=scriptEnabled=false'], CASES_WITHOUT_SCRIPTS)):
        wanted = {name: run for name, run in cases.items() if case in ('all', name)}
        page = Page(folder, *arguments) if wanted else None
        try:
            wrong += sum(fails(page, name, run) for name, run in wanted.items())
        finally:
            if page:
                page.browser.quit()
    return 1 if wrong else 0


sys.exit(main())
