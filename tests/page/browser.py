"""What the cases share: the results that they look at, and a browser with their page."""
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
FIGURE, SWEEP, TABLE, PATHS, PROGRAMS, ODD = 'pingpong', 'sweep', 'table', 'paths', 'programs', "an odd 'one'"
KEYS = 'sweep of two keys'
RINGS, FOLDED, FPGA, CHOSEN, LINKS = 'rings', 'folded', 'fpga', 'chosen', 'links'
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
    keys = 'sweep={nodes.*.board.dmac_read_tags: [1, 4, 16], nodes.*.board.clock: [125 MHz, 250 MHz]}'
    run('run', scenarios + '/whatif/outstanding-reads-1-to-32.yaml', '--set', 'fidelity=flow', '--set', 'expect=[]', '--set', keys, '--out', KEYS)
    run('run', scenarios + '/whatif/links-gen2-gen3.yaml', '--set', 'fidelity=flow', '--set', 'runs.*.bytes=[32 KiB]', '--set', 'expect=[]', '--out', LINKS)
    run('run', scenarios + '/figures/sato2015-table2-atomics.yaml', '--set', 'fidelity=flow', '--out', TABLE)
    run('explain', scenarios + '/smoke/verbs-8b.yaml', '--set', 'fidelity=twin', '--out', PATHS)
    run('run', scenarios + '/smoke/smallest.yaml', '--out', PATHS + '/more', '--trace', PATHS + '/trace.csv', '--trace-causes')
    if shutil.which('ib_send_lat'):
        run('exec', SOURCE + '/tests/dropin/ibsim0.yaml', '--out', PROGRAMS, '--explain', '--trace', 'programs.csv', '--trace-causes',
            '--on', 'node0', 'ib_send_lat -n 20', '--on', 'node1', 'ib_send_lat -n 20 node0')
        os.rename(os.path.join(folder, 'programs.csv'), os.path.join(folder, PROGRAMS, 'trace.csv'))
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
    run('report', ODD, FIGURE, 'other/' + FIGURE, SWEEP, TABLE, PATHS, RINGS, FOLDED, FPGA, CHOSEN, LINKS, KEYS, *([PROGRAMS] if shutil.which('ib_send_lat') else []), '--out', 'report.html')


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

    def table(self, name, file):
        with open(os.path.join(self.folder, name, file)) as text:
            return list(csv.DictReader(text))

    def counters(self, name):
        return self.table(name, 'counters.csv')

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
        self.found = [entry for entry in self.browser.get_log('browser')
                      if entry['level'] in ('SEVERE', 'WARNING') and 'willReadFrequently' not in entry['message']]
        return self.found
