// The section of a result: its figures, sweeps, timeline, counters and manifest.

function panelsOf(result) {
  if (result.figure.panels.length > 0) return result.figure.panels;
  const columns = result.data ? result.data.columns : [];
  return columns.includes("latency_us") ? [{title: "Latency", x: "bytes", y: "latency_us"}, {title: "Bandwidth", x: "bytes", y: "bandwidth_GBps"}] : [];
}

function sweptKeys(result) {
  return result.data ? result.data.columns.filter(column => !FIXED.includes(column)) : [];
}

// The other results that have rows of a column.
function others(result, y) {
  return results.results.filter(one => one !== result && one.data && one.data.columns.includes(y));
}

// The rows that a panel shows. In its series: a star stands for any text; the name of a sweep's series also fits without
// its value.
function panelRows(result, panel) {
  const pattern = String(panel.series || "*").replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/[*]/g, ".*");
  const series = new RegExp(`^(?:${pattern})$`, "s");
  return row => (!(+panel.x_max > 0) || row.bytes <= +panel.x_max) && (!(+panel.at > 0) || row.bytes === +panel.at) &&
                (series.test(row.series) || series.test(baseSeries(row, result)));
}

function panelNode(result, panel) {
  const shown = panelRows(result, panel), rows = objects(result.data).filter(shown);
  const holder = element("div", {style: "flex:1 1 560px;min-width:0"}), colours = new Map();
  const beside = element("select", {class: "beside", title: "compare with another result"}, element("option", {}, "compare with ..."),
    ...others(result, panel.y).map(one => element("option", {value: results.results.indexOf(one)}, one.label)));
  function draw() {
    const swept = panel.x === "sweep", sizes = new Set(rows.map(row => row.bytes)).size > 1, other = results.results[beside.value];
    const words = swept && !rows.some(row => isFinite(leading(placeOf(result, row)))), x = !swept ? panel.x : words ? "at" : "place";
    const prepared = (one, own) => !swept ? own : sweptRows(one, own).map(row =>
      ({...row, at: 0, series: row.group + (words ? `, ${row.place}` : "") + (sizes ? `, ${size(row.bytes)}` : "")}));
    const curves = curvesOf(prepared(result, rows), x, panel.y, false, "", colours);
    if (other) curves.push(...curvesOf(prepared(other, objects(other.data).filter(panelRows(other, panel))), x, panel.y, true, ` (${other.label})`, colours));
    const alone = (words || curves.length > 2) && curves.every(curve => curve.points.length === 1);
    holder.replaceChildren((alone ? barsMake : chartMake)({title: panel.title || panel.y, xTitle: swept ? sweepOf(result).axis : AXES[x] || x, yTitle: AXES[panel.y] || panel.y, curves,
      marks: swept ? [] : crosses(result, x, panel.y).filter(cross => shown(cross.row)), xLog: panel.x_log === undefined ? x === "bytes" : panel.x_log === "true", yLog: panel.y_log === "true", xBytes: x === "bytes"}),
      beside.options.length > 1 ? element("div", {class: "tools"}, beside) : "");
  }
  beside.addEventListener("change", draw);
  draw();
  return holder;
}

// What figure.yaml says of a sweep; results of an earlier version have only columns.
function sweepOf(result) {
  const sweep = result.figure && result.figure.sweep || {};
  return {axis: typeof sweep.axis === "string" ? sweep.axis : sweptKeys(result)[0] || "sweep", stride: +sweep.stride || 1, values: list(sweep.values), others: list(sweep.others), curves: list(sweep.curves)};
}

// "local DMA, 16" of a sweep is the series "local DMA"; "local DMA, 16, 250 MHz" of two keys as well.
function baseSeries(row, result) {
  const curve = sweepOf(result).curves[row.sweep - 1], cut = typeof curve === "string" ? row.series.length - curve.length - 2 : row.series.lastIndexOf(", ");
  const ends = typeof curve !== "string" || (curve !== "" && row.series.endsWith(`, ${curve}`));
  return sweptKeys(result).length > 0 && cut > 0 && ends ? row.series.slice(0, cut) : row.series;
}

// The value of a row on the axis of the sweep.
function placeOf(result, row) {
  const {stride, values} = sweepOf(result);
  return values.length > 0 ? values[Math.floor((row.sweep - 1) / stride) % values.length] : row[sweptKeys(result)[0]];
}

// --- sweeps ---------------------------------------------------------------------------------------------------------

function options(select, texts) { select.replaceChildren(...texts.map(text => element("option", {value: text}, text))); }

// The dimensions in which two rows differ that are the same in others.
function openDimensions(rows, same, dimensions) {
  const first = new Map(), open = new Set();
  for (const row of rows) {
    const place = JSON.stringify(same.map(name => row[name]));
    if (!first.has(place)) first.set(place, row);
    dimensions.filter(name => row[name] !== first.get(place)[name]).forEach(name => open.add(name));
  }
  return dimensions.filter(name => open.has(name));
}

// With their places on the axis, and the name of the curve over it.
function sweptRows(result, rows) {
  const {others} = sweepOf(result);
  return rows.map(row => {
    const base = baseSeries(row, result), other = others[row.sweep - 1];
    return {...row, base, place: placeOf(result, row), group: other ? `${base}, ${other}` : base};
  });
}

function inOrder(values) { return [...new Set(values)].sort((a, b) => leading(a) - leading(b) || 0); }

// The rows of one value in each dimension in which there would be several of a point; its select is shown then.
function valuesChoose(rows, same, fixed) {
  for (const [name, {select, label}] of fixed) {
    label.hidden = openDimensions(rows, same, [name]).length === 0;
    if (label.hidden) continue;
    const values = inOrder(rows.map(row => row[name])), before = select.value;
    select.replaceChildren(...values.map(value => element("option", {value}, name === "bytes" ? size(value) : value)));
    select.value = values.some(value => String(value) === before) ? before : values[values.length - 1];
    rows = rows.filter(row => String(row[name]) === select.value);
  }
  return rows;
}

function sweepNode(result) {
  const keys = sweptKeys(result), rows = objects(result.data).map(row => ({...row, base: baseSeries(row, result)}));
  if (keys.length === 0) return null;
  const series = element("select"), x = element("select"), y = element("select"), value = element("select"), holder = element("div");
  const dimensions = [...keys, "bytes", "descriptors"], fixed = new Map(dimensions.map(name => {
    const select = element("select");
    return [name, {select, label: element("label", {class: "fixed"}, ` ${name} `, select)}];
  }));
  options(series, [...new Set(rows.map(row => row.base))]);
  options(x, keys);
  options(value, ["latency_us", "bandwidth_GBps", "memory_MB"].filter(name => result.data.columns.includes(name)));
  function draw() {
    const all = rows.filter(row => row.base === series.value && typeof row[value.value] === "number"), before = y.value;
    options(y, openDimensions(all, [x.value], dimensions));
    if ([...y.options].some(option => option.value === before)) y.value = before;
    const own = valuesChoose(all, [x.value, y.value], fixed);
    holder.replaceChildren(element("div", {class: "figures"}, againstKey(own, x.value, y.value, value.value), y.value ? surface(own, x.value, y.value, value.value) : ""));
  }
  for (const one of [series, x, y, value, ...[...fixed.values()].map(({select}) => select)]) one.addEventListener("change", draw);
  draw();
  return element("div", {class: "sweep"}, element("h3", {}, "Against the swept keys"),
    element("div", {class: "tools"}, series, "x", x, "by", y, "value", value, ...[...fixed.values()].map(({label}) => label)), holder);
}

function againstKey(rows, x, y, value) {
  const label = row => y === "bytes" ? size(row.bytes) : String(row[y]), title = `${AXES[value]} against ${x}`;
  if (!rows.some(row => isFinite(leading(row[x])))) { // words
    const bars = rows.map(row => ({...row, series: y ? `${row[x]}, ${label(row)}` : String(row[x]), at: 0}));
    return barsMake({title, yTitle: AXES[value], curves: curvesOf(bars, "at", value, false, "", new Map())});
  }
  const named = rows.map(row => ({...row, series: y ? label(row) : row.base})), curves = curvesOf(named, x, value, false, "", new Map());
  return chartMake({title, xTitle: x, yTitle: AXES[value], curves: curves.slice(0, 12), xLog: false, yLog: false});
}

// Colour over two keys.
function surface(rows, x, y, value) {
  const xs = inOrder(rows.map(row => row[x])), ys = inOrder(rows.map(row => row[y]));
  const left = MARGIN.left + 20, xBand = d3.scaleBand().domain(xs).range([left, WIDTH - MARGIN.right]), yBand = d3.scaleBand().domain(ys).range([HEIGHT - MARGIN.bottom, MARGIN.top]);
  const [low, high] = d3.extent(rows, row => row[value]), wide = low > 0 && high > 30 * low;
  const colour = d3.scaleSequential(d3.interpolateViridis).domain(wide ? [Math.log(low), Math.log(high)] : [low, high]);
  const svg = d3.create("svg").attr("class", "chart").attr("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.selectAll("rect").data(rows).join("rect").attr("class", "cell").attr("x", row => xBand(row[x])).attr("y", row => yBand(row[y])).attr("width", xBand.bandwidth()).attr("height", yBand.bandwidth())
    .attr("fill", row => colour(wide ? Math.log(row[value]) : row[value]))
    .on("mousemove", row => tipShow(d3.event, `${x}: ${row[x]}\n${y}: ${y === "bytes" ? size(row[y]) : row[y]}\n${AXES[value]}: ${number(row[value], 6)}`)).on("mouseleave", tipHide);
  svg.append("g").attr("transform", `translate(0,${HEIGHT - MARGIN.bottom})`).call(d3.axisBottom(xBand));
  svg.append("g").attr("transform", `translate(${left},0)`).call(d3.axisLeft(yBand).tickFormat(one => y === "bytes" ? size(one) : one));
  svg.append("text").attr("x", (WIDTH + left) / 2).attr("y", HEIGHT - 8).attr("text-anchor", "middle").text(x);
  return element("figure", {}, element("figcaption", {}, `${AXES[value]} over ${x} and ${y}${wide ? ", logarithmic colours" : ""}`), svg.node());
}

// --- the rest of a result -------------------------------------------------------------------------------------------

function countersNode(result) {
  const rows = objects(result.counters);
  if (rows.length === 0) return null;
  const count = element("span"), words = element("input", {type: "search", placeholder: "filter: node0 stalls"});
  const table = tableMake(rows, [{name: "series", title: "Series"}, {name: "component", title: "Component"}, {name: "name", title: "Counter"},
    {name: "value", title: "Value", number: true}, {name: "unit", title: "Unit"}], {count, most: 2000});
  words.addEventListener("input", () => table.filter(wordsFilter(words.value)));
  return element("details", {class: "counters"}, element("summary", {}, `Counters (${rows.length} that are not 0)`), element("div", {class: "tools"}, words, count), element("div", {class: "scroll"}, table.node));
}

function manifestNode(result) {
  return result.manifest ? element("details", {}, element("summary", {}, "Manifest"), element("pre", {}, JSON.stringify(result.manifest, null, 2))) : null;
}

function rowsNode(result) {
  const rows = objects(result.data);
  if (rows.length === 0) return null;
  const columns = result.data.columns.map(name => ({name, title: name, number: typeof rows[0][name] === "number"}));
  return element("details", {}, element("summary", {}, `Rows (${rows.length})`), element("div", {class: "scroll"}, tableMake(rows, columns, {most: 2000}).node));
}

// Compared rows that are no point of a figure.
function besideNode(result) {
  const columns = panelsOf(result).map(panel => panel.y);
  const left = objects(result.compare).filter(row => !result.figure.points.some(point => point.id === row.id && point.what === row.what && columns.includes(point.column)));
  return left.length === 0 || columns.length === 0 ? null : element("p", {}, "Not in the figures: ", left.map(row => `${row.id} ${row.what}: ${number(row.simulated)} (published ${row.published} ${row.unit})`).join("; "), ".");
}

function figuresNode(result) {
  return result.data ? element("div", {class: "figures"}, ...panelsOf(result).map(panel => panelNode(result, panel))) : null;
}

// A part that cannot be shown, because the files are not what they should be, leaves the others as they are.
function resultSection(result) {
  const parts = [figuresNode, besideNode, sweepNode, timelineNode, calibrationNode, rowsNode, linksNode, countersNode, manifestNode].map(make => {
    try { return make(result); } catch (error) { return element("p", {class: "off"}, `A part of this result cannot be shown: ${error.message}`); }
  });
  return element("section", {id: result.anchor}, element("h2", {}, result.figure.title || result.name), element("p", {}, element("code", {}, result.directory)), ...parts);
}

function calibrationNode(result) {
  if (!result.sensitivity) return null;
  const rows = objects(result.sensitivity), columns = result.sensitivity.columns.map((name, i) => ({name, title: name, number: i > 2}));
  return element("div", {}, element("h3", {}, "Change of a row over the whole range of a key, in per cent"), tableMake(rows, columns).node, result.plot ? element("img", {src: result.plot, alt: "errors of rows over keys"}) : "");
}
