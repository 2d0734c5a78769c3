"""Cases about links and their use."""
import time

from selenium.webdriver.common.action_chains import ActionChains

from browser import FIGURE, RINGS, FOLDED, FPGA, LINKS


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


def shares_of_a_sweep_follow_from_the_scenario_of_each_value(page):
    page.open()
    section = page.section(LINKS)
    if not page.one('.links', section).get_attribute('open'):
        page.browser.execute_script('arguments[0].click()', page.one('.links summary', section))
    generations = set()
    for value in page.table(LINKS, 'values/index.csv'):
        series = f"DMA, {value['value']}"
        page.choose(page.one('.links select.series', section), series)
        wire = page.yaml(LINKS, f"values/{value['folder']}/resolved.yaml")['nodes'][0]['slot']
        capacity = LANE_GBps[wire['generation']] * int(wire['lanes'][1:])
        generations.add(wire['generation'])
        use, ps = links_use(page, LINKS, series)
        row = next(row for row in page.cells(page.one('.links table', section)) if row[0] == 'node0.slot')
        share = 1e5 * use['node0.slot'][0]['wire_bytes'] / ps / capacity
        assert row[1] == series and share > 0 and abs(float(row[3].split()[0]) - share) <= 1e-2 * share, (row, share)
    assert generations == {'Gen2', 'Gen3'}
