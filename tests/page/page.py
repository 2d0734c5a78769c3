#!/usr/bin/python3
"""page.py PROGRAM FOLDER CASE: the page of `tcasim report` in Chromium. The case `results` makes the results and the page
in the folder, which the others open; `all` is all of them. Status 77: there is no browser, or no Selenium."""
import csv
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter

try:
    import yaml
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
except ImportError:
    print('there is no Selenium, or no YAML (Debian: python3-selenium, python3-yaml)')
    sys.exit(77)

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIGURE, SWEEP, TABLE, PATHS, ODD = 'pingpong', 'sweep', 'table', 'paths', "an odd 'one'"
RINGS, FOLDED, FPGA, CHOSEN = 'rings', 'folded', 'fpga', 'chosen'
CHOICE = """
title: Panels that choose
topology: {kind: pair, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}, cable: pearl-gen2-x8}
runs:
  - {series: DMA (near), workload: pingpong, method: register, node: node0, peer: node1, bytes: [8 B, 64 B], iterations: 1}
  - {series: PIO, workload: pingpong, method: pio, node: node0, peer: node1, bytes: [8 B, 64 B], iterations: 1}
plot:
  - {title: one series, y: latency_us, series: "DMA (*"}
  - {title: one size, y: latency_us, at: 64 B}
"""


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
    run('run', scenarios + '/smoke/smallest.yaml', '--out', PATHS + '/more', '--trace', PATHS + '/trace.csv')
    run('run', scenarios + '/topology/two-rings-8.yaml', '--set', 'expect=[]', '--out', RINGS)
    run('run', scenarios + '/fabric/hybrid-two-sub-clusters.yaml', '--set', 'fidelity=twin', '--set', 'expect=[]', '--out', FOLDED)
    run('run', scenarios + '/figures/kobayashi2018-table2-latency.yaml', '--set', 'fidelity=twin', '--out', FPGA)
    with open(os.path.join(folder, 'chosen.yaml'), 'w') as file:
        file.write(CHOICE)
    run('run', 'chosen.yaml', '--out', CHOSEN)
    for options in ([], ['--within', '2 %']):
        done = subprocess.run([program, 'compare', FIGURE, 'other/' + FIGURE, '--out', 'compared', *options], stdout=subprocess.PIPE, text=True, cwd=folder)
        with open(os.path.join(folder, f'compared-{len(options)}.txt'), 'w') as file:
            file.write(done.stdout)
    odd = {'data.csv': 'series,bytes,latency_us,bandwidth_GBps\n4,8,1.0,0.008\n4,16,2.0,0.008\n  <b>a</b>  b,8,1,0.008\n',
           'trace.csv': 'series,time_ps,component,point,kind\n', 'figure.yaml': '{}\n', 'manifest.yaml': 'runs: {}\n',
           'breakdown.csv': 'series,part,detail,component,begin_ps,end_ps,duration_ps\n7,a,b,c,0,5,5\n'}
    os.makedirs(os.path.join(folder, ODD))
    for name, text in odd.items():
        with open(os.path.join(folder, ODD, name), 'w') as file:
            file.write(text)
    run('report', ODD, FIGURE, 'other/' + FIGURE, SWEEP, TABLE, PATHS, RINGS, FOLDED, FPGA, CHOSEN, '--out', 'report.html')


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

    def counters(self, name):
        with open(os.path.join(self.folder, name, 'counters.csv')) as file:
            return list(csv.DictReader(file))

    def yaml(self, name, file):
        with open(os.path.join(self.folder, name, file)) as text:
            return yaml.safe_load(text)

    def cells(self, table):
        return self.browser.execute_script('return [...arguments[0].tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent))', table)

    def within(self, text):
        self.one('#compare .within').clear()
        self.one('#compare .within').send_keys(text)

    def choose(self, select, text):
        next(option for option in self.all('option', select) if option.text == text).click()

    def failures(self):
        self.found = [entry for entry in self.browser.get_log('browser') if entry['level'] in ('SEVERE', 'WARNING')]
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


def a_timeline_finds_and_tells_times(page):
    page.open()
    section = page.section(PATHS)
    canvases, searches = page.all('canvas', section), page.all('.timelines input[type=search]', section)
    assert len(canvases) == 2  # the critical path, and the events of trace.csv
    searches[1].send_keys('mrd')
    with open(os.path.join(page.folder, PATHS, 'trace.csv')) as file:
        events = list(csv.DictReader(file))
    wanted = sum('mrd' in ' '.join(event.values()).lower() for event in events if event['series'] == events[0]['series'])
    assert wanted > 0
    assert any(f'{wanted} found' in span.text for span in page.all('.timelines .tools span', section))
    page.browser.execute_script('arguments[0].scrollIntoView({block: "center"})', canvases[0])
    width, height = canvases[0].size['width'], canvases[0].size['height']
    ActionChains(page.browser).move_to_element_with_offset(canvases[0], -width // 2 + 195, -height // 2 + 10).perform()
    assert 'stores' in page.one('#tip').text, page.one('#tip').text


def a_long_timeline_stays_fluid(page):
    page.open()
    took = page.browser.execute_script('''
        const records = [];
        for (let i = 0; i < 100000; i++) records.push({lane: `lane${i % 20}`, begin: i * 100, end: i * 100 + 50, colour: "#0072B2", text: `tag=${i}`});
        const node = lanesNode(records, true);
        document.body.append(node);
        const canvas = node.querySelector("canvas"), start = performance.now();
        for (let i = 0; i < 20; i++) canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -1, clientX: 600, clientY: 50}));
        return (performance.now() - start) / 20;''')
    print(f'{took:.1f} ms a step')
    assert page.failures() == [], page.found


# --- links ----------------------------------------------------------------------------------------------------------

LANE_GBps = {'Gen1': 0.25, 'Gen2': 0.5, 'Gen3': 128 / 130}  # a lane after its encoding


def links_use(page, result, series):
    """The counters of both ends of each link in a series, and its simulated time."""
    use, wanted = {}, ('wire_bytes_sent', 'wire_bytes', 'tlps_sent', 'packets', 'replays')
    for row in page.counters(result):
        if row['series'] == series and row['name'] in wanted and row['component'][-2:] in ('.0', '.1'):
            use.setdefault(row['component'][:-2], ({}, {}))[int(row['component'][-1])][row['name'].replace('_sent', '')] = int(row['value'])
    ps = next(run['simulated_ps'] for run in page.yaml(result, 'manifest.yaml')['runs'] if run['series'] == series)
    return use, ps


def links_of(page, result):
    return page.browser.execute_script('return results.results.find(one => one.name === arguments[0]).links', result)


def hovering_a_link_shows_its_use(page):
    page.open()
    section = page.section(RINGS)
    page.choose(page.one('.links select.series', section), '3 hops')
    cables = page.yaml(RINGS, 'resolved.yaml')['cables']
    use, ps = links_use(page, RINGS, '3 hops')
    busy = [cable for cable in cables if use[f"{cable['from']}-{cable['to']}"][0]['wire_bytes'] > 0]
    assert len(busy) >= 3
    for cable in busy[:3]:
        name = f"{cable['from']}-{cable['to']}"
        tip = page.hover(page.one(f'path.hit[data-link="{name}"]', section)).split('\n')
        capacity = LANE_GBps[cable['generation']] * int(cable['lanes'][1:])
        assert f'{capacity:g} GB/s in each direction' in tip[0], tip
        for i, line in enumerate(tip[1:]):
            ends = (cable['from'], cable['to'])
            rate = use[name][i]['wire_bytes'] / ps * 1000
            shown = line.split(': ')[1].split(', ')
            assert line.startswith(f'{ends[i]} → {ends[1 - i]}: '), line
            assert abs(float(shown[0].split()[0]) - rate) <= 1e-3 * rate, (line, rate)
            assert abs(float(shown[1].split()[0]) - 100 * rate / capacity) <= 1e-2 * 100 * rate / capacity, (line, rate)
            assert shown[2:] == [f"{use[name][i]['tlps']:,} TLPs", f"{use[name][i]['replays']} replays"], line


def a_busier_link_is_wider(page):
    page.open()
    section = page.section(RINGS)
    use, ps = links_use(page, RINGS, page.one('.links select.series', section).get_attribute('value'))
    widths = {}
    for path in page.all('path.hit[data-link]', section):
        halves = page.browser.execute_script('const a = arguments[0].previousSibling; return [a.previousSibling, a].map(one => +one.getAttribute("stroke-width"))', path)
        for i in (0, 1):
            widths[use[path.get_attribute('data-link')][i]['wire_bytes']] = halves[i]
    in_order = [widths[count] for count in sorted(widths)]
    assert len(in_order) >= 2 and in_order == sorted(in_order) and in_order[-1] > in_order[0] == 1.5, widths


def a_folded_link_says_what_it_stands_for(page):
    page.open()
    section = page.section(FOLDED)
    select = page.one('.links select.series', section)
    use, ps = links_use(page, FOLDED, select.get_attribute('value'))
    line = page.one('path.hit[data-links]', section)
    names = line.get_attribute('data-links').split()
    capacity = {link['name']: link['capacity_GBps'] for link in links_of(page, FOLDED)}
    shares = [end['wire_bytes'] / ps * 1e5 / capacity[name] for name in names for end in use[name]]
    assert len(names) == 4 and max(shares) > 0
    tip = page.hover(line)
    assert 'stands for 4 links' in tip
    numbers = tip.split('\n')[1].replace('%', '').replace(',', '').split()
    assert abs(float(numbers[2]) - max(shares)) <= 0.01 * max(shares), (tip, shares)
    assert abs(float(numbers[-1]) - sum(shares) / len(shares)) <= 0.01 * max(shares), (tip, shares)


def links_have_the_names_of_their_counters(page):
    page.open()
    for result in (FIGURE, RINGS, FOLDED, FPGA):
        named = {link['name'] for link in links_of(page, result)}
        counted = {row['component'][:-2] for row in page.counters(result)
                   if row['name'] in ('wire_bytes', 'wire_bytes_sent') and not row['component'][:-2].endswith('.loopback')}
        assert named == counted, (result, named ^ counted)


def capacities_follow_from_the_scenario(page):
    page.open()
    for result in (RINGS, FOLDED):
        scenario = page.yaml(result, 'resolved.yaml')
        shown = {link['name']: link['capacity_GBps'] for link in links_of(page, result)}
        wires = {f"{cable['from']}-{cable['to']}": cable for cable in scenario['cables']}
        for node in scenario['nodes']:
            wires[f"{node['name']}.slot"] = node['slot']
            if 'hca' in node:
                wires[f"{node['name']}.hca.slot"] = node['hca']
        for name, wire in wires.items():
            capacity = LANE_GBps[wire['generation']] * int(wire['lanes'][1:])
            assert abs(shown[name] - capacity) < 1e-6 * capacity, (name, shown[name], wire)
        infiniband = {name: rate for name, rate in shown.items() if name.endswith('.ib')}
        assert result == RINGS or set(infiniband.values()) == {4}, infiniband  # QDR


def a_link_and_its_row_choose_each_other(page):
    page.open()
    section = page.section(RINGS)
    link = page.one('path.hit[data-link="node1.E-node2.W"]', section)
    page.hover(link)
    ActionChains(page.browser).click(link).perform()
    assert [row.get_attribute('data-link') for row in page.all('.links tr.chosen', section)] == ['node1.E-node2.W']
    page.browser.execute_script('arguments[0].click()', page.one('.links tr[data-link="node5.slot"]', section))
    assert [shape.get_attribute('data-name') for shape in page.all('.hit.chosen', section)] == ['node5']
    page.one('.links input[type=search]', section).send_keys('node3 slot')
    shown = [row[0] for row in page.cells(page.one('.links table', section))]
    assert 'node3.slot' in shown and all(name.startswith('node3.') and name.endswith('slot') for name in shown), shown


def links_of_a_sweep_have_rates_alone(page):
    page.open()
    section = page.section(SWEEP)
    page.browser.execute_script('arguments[0].click()', page.one('.links summary', section))
    page.wait(lambda: page.all('.links tbody tr', section))
    row = page.cells(page.one('.links table', section))[0]
    assert float(row[2]) > 0 and row[3] == '', row
    assert 'only rates are known' in page.one('.links p', section).text


# --- two results ----------------------------------------------------------------------------------------------------

def size(count):
    units = ['', 'Ki', 'Mi']
    while count >= 1024 and len(units) > 1:
        count, units = count / 1024, units[1:]
    return f'{count:g} {units[0]}B'


def compared(page, name):
    with open(os.path.join(page.folder, 'compared', name)) as file:  # with --within '2 %'
        return list(csv.DictReader(file))


def number_cells(row):
    both = row['first'] and row['second']
    percent = f"{float(row['percent']):+.3f} %" if row['percent'] else f"{'-' if row['difference'][0] == '-' else '+'}inf %" if both else ''
    return row['first'] or '(none)', row['second'] or '(none)', percent, row['state']


def two_results_have_the_numbers_of_compare(page):
    page.open()
    section = page.one('#compare')
    page.within('2')
    shown = page.cells(page.one('.rows table', section))
    wanted = [(row['series'], size(int(row['bytes'])), row['descriptors'], row['column'], *number_cells(row)) for row in compared(page, 'rows.csv')]
    seen = [(*row[:6], row[7], row[8]) for row in shown]
    assert Counter(seen) == Counter(wanted), list((Counter(seen) - Counter(wanted)).items())[:5]
    sizes = [abs(float(row[7].split()[0])) for row in shown]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 0
    shown = page.cells(page.one('.counters table', section))
    seen = [(*row[:5], row[6], row[7]) for row in shown]
    wanted = [(row['series'], row['component'], row['name'], *number_cells(row)) for row in compared(page, 'counters.csv') if row['state'] != 'equal']
    assert wanted and Counter(seen) == Counter(wanted), (seen[:3], wanted[:3])
    keys = page.cells(page.one('.keys table', section))
    assert keys == [[row['key'], row['first'] or '(none)', row['second'] or '(none)'] for row in compared(page, 'keys.csv')]


def two_results_have_the_verdict_of_compare(page):
    page.open()
    section = page.one('#compare')
    for options, typed in ((0, '0'), (2, '2')):
        with open(os.path.join(page.folder, f'compared-{options}.txt')) as file:
            wanted = [line for line in file.read().split('\n') if ' numbers differ' in line]
        page.within(typed)
        assert [page.one('.verdict', section).text] == wanted


def a_comparison_filters_and_draws_both(page):
    page.open()
    section = page.one('#compare')
    table = page.one('.rows table', section)
    every = page.cells(table)
    page.one('.words', section).send_keys('pio latency_us')
    shown = page.cells(table)
    assert 0 < len(shown) < len(every) and all('PIO' in row[0] and 'latency_us' in row[3] for row in shown)
    page.browser.execute_script('arguments[0].click()', page.one('.only', section))
    shown = page.cells(table)
    assert shown and all(row[8] == 'beyond' for row in shown)
    figures = page.all('figure.interactive', section)
    names = {circle.get_attribute('data-series') for circle in page.all('circle', figures[0])}
    assert {'PIO CPU-CPU', 'PIO CPU-CPU (first)'} <= names
    row = next(row for row in compared(page, 'rows.csv') if row['series'] == 'PIO CPU-CPU' and row['bytes'] == '64' and row['column'] == 'latency_us')
    point = page.one('circle[data-series="PIO CPU-CPU"][data-x="64"]', figures[1])
    assert abs(float(point.get_attribute('data-y')) - float(row['percent'])) < 1e-5


def only_results_of_one_name_are_compared(page):
    page.open()
    assert [option.text for option in page.all('#compare .choice select.first option')] == [FIGURE]
    assert [option.text for option in page.all('#compare .choice select.second option')] == ['other/' + FIGURE]


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
    assert len(page.all('section')) == 12 and page.failures() == []


def a_panel_shows_what_it_chooses(page):
    page.open()
    figures = page.all('figure.interactive', page.section(CHOSEN))
    shown = [{(circle.get_attribute('data-series'), circle.get_attribute('data-x')) for circle in page.all('circle', figure)}
             for figure in figures]
    assert {series for series, _ in shown[0]} == {'DMA (near)'} and len(shown[0]) == 2, shown
    assert {series for series, _ in shown[1]} == {'DMA (near)', 'PIO'} and len(shown[1]) == 2, shown


def a_watched_page_follows_its_file(page):
    program, file = sys.argv[1], os.path.join(page.folder, 'watched.yaml')
    out = os.path.join(page.folder, 'watched')
    shutil.rmtree(out, ignore_errors=True)

    def write(text):
        with open(file, 'w') as scenario:
            scenario.write(text)

    with open(os.path.join(SOURCE, 'scenarios', 'smoke', 'smallest.yaml')) as scenario:
        text = scenario.read()
    write(text)
    watching = subprocess.Popen([program, 'watch', file, '--out', out], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)
    try:
        page.wait(lambda: os.path.exists(os.path.join(out, 'report.watch.js')))
        page.browser.get('file://' + os.path.join(out, 'report.html'))
        page.wait(lambda: page.all('section'))
        write(text.replace('title: ', 'title: [', 1))
        time.sleep(1)
        write(text.replace('title: ', 'title: Again, ', 1))
        page.wait(lambda: 'Again, ' in page.browser.page_source)
    finally:
        watching.send_signal(signal.SIGINT)
        errors = watching.communicate()[1]
    assert watching.returncode == -signal.SIGINT and 'not YAML' in errors and 'interrupted' in errors, errors
    assert page.failures() == []


CASES = {case.__name__: case for case in (
    no_script_fails, hovering_shows_the_number, published_values_have_the_colour_of_their_curve, the_filter_filters,
    heads_sort_by_their_column, a_row_opens_its_reason, a_series_can_be_left_out,
    dragging_zooms_and_a_double_click_shows_the_whole, another_result_stands_beside, a_sweep_has_curves_and_a_surface,
    a_table_of_one_size_has_bars, a_breakdown_opens_into_its_pieces, a_timeline_finds_and_tells_times,
    a_long_timeline_stays_fluid, nothing_is_loaded_from_elsewhere,
    hovering_a_link_shows_its_use, a_busier_link_is_wider, a_folded_link_says_what_it_stands_for,
    links_have_the_names_of_their_counters, capacities_follow_from_the_scenario, a_link_and_its_row_choose_each_other,
    links_of_a_sweep_have_rates_alone, two_results_have_the_numbers_of_compare, two_results_have_the_verdict_of_compare,
    a_comparison_filters_and_draws_both, only_results_of_one_name_are_compared,
    a_panel_shows_what_it_chooses, a_watched_page_follows_its_file, both_colour_schemes_can_be_read, odd_results_leave_the_others_as_they_are)}
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
