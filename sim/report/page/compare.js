// Two results of one scenario beside each other. The program has joined their rows and computed the differences, as
// `tcasim compare` does; here they are only shown and held against a tolerance.

// Whether a number differs by more than the tolerance (sim/report/difference.c); infinite: it has no percentage.
function away(row) { return typeof row.percent === "number" ? Math.abs(row.percent) : Infinity; }
function differs(row, within) { return away(row) !== 0 && !(within > 0 && away(row) <= within + 1e-10); }

function stateName(row, within) {
  return row.second === null ? "only in the first" : row.first === null ? "only in the second" : away(row) === 0 ? "equal" : differs(row, within) ? "beyond" : "within";
}

function changeText(row) {
  return row.percent === null ? "" : typeof row.percent === "number" ? `${row.percent < 0 ? "" : "+"}${row.percent.toFixed(3)} %` : `${row.percent} %`;
}

function differenceTable(rows, identity, state, count) {
  const value = row => name => row[name] === null ? "(none)" : row[name];
  return tableMake([...rows].sort((a, b) => away(b) - away(a) || 0), [...identity,
    {name: "first", title: "First", number: true, cell: row => value(row)("first"), sort: row => leading(row.first)},
    {name: "second", title: "Second", number: true, cell: row => value(row)("second"), sort: row => leading(row.second)},
    {name: "difference", title: "Difference", number: true, cell: row => row.difference || "", sort: row => leading(row.difference)},
    {name: "percent", title: "Relative", number: true, cell: changeText, sort: away, mark: row => differs(row, state.within) ? "off" : ""},
    {name: "state", title: "State", cell: row => stateName(row, state.within), sort: row => stateName(row, state.within)}], {count, most: 2000});
}

// The curves of both, the first dashed and hollow, and beside them the difference in per cent.
function jointNodes(first, second, rows) {
  return panelsOf(second).filter(panel => panel.x !== "sweep" && first.data.columns.includes(panel.y) && second.data.columns.includes(panel.y)).flatMap(panel => {
    const colours = new Map(), x = panel.x, wide = {xTitle: AXES[x] || x, xLog: panel.x_log === undefined ? x === "bytes" : panel.x_log === "true", xBytes: x === "bytes"};
    const curves = [...curvesOf(objects(second.data), x, panel.y, false, "", colours), ...curvesOf(objects(first.data), x, panel.y, true, " (first)", colours)];
    const changes = curvesOf(rows.filter(row => row.column === panel.y), x, "percent", false, "", colours);
    if (curves.length === 0) return [];
    const joint = chartMake({title: panel.title || AXES[panel.y] || panel.y, yTitle: AXES[panel.y] || panel.y, yLog: panel.y_log === "true", curves, ...wide});
    return [joint, ...(changes.length > 0 ? [chartMake({title: `Difference of ${panel.y}`, yTitle: "Difference [%]", yLog: false, curves: changes, ...wide})] : [])];
  });
}

function keysNode(one) {
  if (!one.resolved) return element("p", {}, "The scenarios are not compared: not both have a resolved.yaml (of a sweep, each of values/ has one).");
  if (one.keys.length === 0) return element("p", {}, "The scenarios are the same.");
  const text = value => value === null ? "(none)" : value, rows = one.keys.map(([key, first, second]) => ({key, first: text(first), second: text(second)}));
  return element("div", {class: "keys"}, element("h3", {}, `Keys of the scenario that differ (${rows.length})`),
    element("div", {class: "scroll"}, tableMake(rows, [{name: "key", title: "Key"}, {name: "first", title: "First"}, {name: "second", title: "Second"}], {most: 2000}).node));
}

const ROW_IDENTITY = [{name: "series", title: "Series"}, {name: "bytes", title: "Size", number: true, cell: row => size(row.bytes) + (row.copy > 0 ? " (again)" : "")},
  {name: "descriptors", title: "Descriptors", number: true}, {name: "ranks", title: "Ranks", number: true, cell: row => row.ranks > 0 ? number(row.ranks) : ""}, {name: "column", title: "Column"}];
const COUNTER_IDENTITY = [{name: "series", title: "Series"}, {name: "component", title: "Component"}, {name: "name", title: "Counter"}];

function comparisonNode(one) {
  const first = results.results[one.first], second = results.results[one.second], rows = objects(one.rows), counters = objects(one.counters), state = {within: 0};
  const counts = [element("span"), element("span")], verdict = element("p", {class: "verdict"});
  const tables = [differenceTable(rows, ROW_IDENTITY.filter(column => column.name !== "ranks" || rows.some(row => row.ranks > 0)), state, counts[0]), differenceTable(counters, COUNTER_IDENTITY, state, counts[1])];
  const words = element("input", {type: "search", placeholder: "filter: latency 4096", class: "words", oninput: update});
  const within = element("input", {type: "number", min: "0", step: "any", value: "0", class: "within", style: "width:6em", oninput: update}), only = element("input", {type: "checkbox", class: "only", onchange: update});
  function update() {
    const has = wordsFilter(words.value);
    state.within = Math.max(+within.value || 0, 0);
    const beyond = d3.sum([...rows, ...counters], row => differs(row, state.within));
    verdict.textContent = beyond > 0 ? `${beyond} of ${one.numbers} numbers differ${state.within > 0 ? ` by more than ${within.value} %` : ""}` :
      `${one.numbers} numbers, ${state.within > 0 ? "none differs by more than was allowed" : "all are equal"}`;
    for (const table of tables) table.filter(row => has(row) && (!only.checked || differs(row, state.within)));
  }
  update();
  return element("div", {}, verdict, keysNode(one), element("div", {class: "figures"}, ...jointNodes(first, second, rows)),
    element("div", {class: "tools"}, words, element("label", {}, "within ", within, " %"), element("label", {}, only, " only what differs by more")),
    element("h3", {}, "Rows ", counts[0]), element("div", {class: "scroll rows"}, tables[0].node),
    counters.length > 0 ? element("div", {}, element("h3", {}, "Counters that differ ", counts[1]), element("div", {class: "scroll counters"}, tables[1].node)) : "");
}

// Any two results of one name; the first one is the earlier one on the page.
function compareSection() {
  const all = list(results.differences);
  if (all.length === 0) return null;
  const choice = name => element("select", {class: name}), first = choice("first"), second = choice("second"), holder = element("div");
  const label = i => element("option", {value: i}, results.results[i].label);
  function seconds() {
    second.replaceChildren(...all.filter(one => one.first === +first.value).map(one => label(one.second)));
    draw();
  }
  function draw() { holder.replaceChildren(comparisonNode(all.find(one => one.first === +first.value && one.second === +second.value))); }
  first.append(...[...new Set(all.map(one => one.first))].map(label));
  first.addEventListener("change", seconds);
  second.addEventListener("change", draw);
  seconds();
  return element("section", {id: "compare"}, element("h2", {}, "Two results compared"), element("div", {class: "tools choice"}, "first", first, "second", second), holder);
}
