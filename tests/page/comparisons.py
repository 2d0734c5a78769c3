"""Cases about two results compared."""
import csv
import os
from collections import Counter

from browser import FIGURE


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
