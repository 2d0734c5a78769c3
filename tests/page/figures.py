"""Cases about tables, figures, sweeps and breakdowns."""
import csv
import os
import shutil
import signal
import subprocess
import sys
import time

from selenium.webdriver.common.action_chains import ActionChains

from browser import SOURCE, FIGURE, SWEEP, TABLE, PATHS, ODD, CHOSEN, KEYS, LINKS


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


def a_sweep_of_two_keys_has_a_line_for_each_value_of_the_second_one(page):
    page.open()
    section = page.section(KEYS)
    rows = page.rows(KEYS)
    tags, clock = 'nodes.*.board.dmac_read_tags', 'nodes.*.board.clock'
    panel = next(figure for figure in page.all('figure.interactive', section) if 'over outstanding reads' in figure.text)
    points = [(circle.get_attribute('data-series'), circle.get_attribute('data-y')) for circle in page.all('circle', panel)]
    assert {name for name, _ in points} >= {'local DMA, 125 MHz, 4 MiB', 'local DMA, 250 MHz, 4 MiB'}, points
    largest = [row for row in rows if row['bytes'] == str(4 << 20)]
    for mhz in ('125 MHz', '250 MHz'):
        wanted = sorted(float(row['bandwidth_GBps']) for row in largest if row[clock] == mhz)
        assert sorted(float(y) for name, y in points if name == f'local DMA, {mhz}, 4 MiB') == wanted, points
    # Below, size after size.
    sweep = page.one('.sweep', section)
    series = page.all('option', page.all('select', sweep)[0])
    assert [option.text for option in series] == ['local DMA']
    assert len(page.all('rect.cell', sweep)) == len({row[tags] for row in rows}) * len({row[clock] for row in rows})
    sizes = next(label for label in page.all('label.fixed', sweep) if label.is_displayed())
    assert page.one('select', sizes).get_attribute('value') == str(4 << 20)
    next(option for option in page.all('option', sizes) if option.text == '4 KiB').click()
    lines = page.one('figure.interactive', sweep)
    shown = sorted(float(circle.get_attribute('data-y')) for circle in page.all('circle', lines))
    assert shown == sorted(float(row['latency_us']) for row in rows if row['bytes'] == '4096'), shown


def a_sweep_beside_itself_has_the_same_curves(page):
    page.open()
    section = page.section(KEYS)
    panel = next(figure for figure in page.all('figure.interactive', section) if 'over outstanding reads' in figure.text)
    holder = panel.find_element('xpath', '..')
    next(option for option in page.all('option', page.one('select.beside', holder)) if option.text == SWEEP).click()
    names = {circle.get_attribute('data-series') for circle in page.all('circle', holder)}
    assert {'local DMA, 125 MHz, 4 MiB', f'local DMA, 4 MiB ({SWEEP})'} <= names, names


def a_sweep_of_words_has_bars(page):
    page.open()
    sweep = page.one('.sweep', page.section(LINKS))
    assert len(page.all('rect.bar', sweep)) == len({row['series'] for row in page.rows(LINKS)})


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
    assert len(page.all('section')) == (15 if shutil.which('ib_send_lat') else 14) and page.failures() == []


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
