// Charts of a result's rows: curves by series, with published values, zoom, and another result beside them.

const WIDTH = 620, HEIGHT = 380, MARGIN = {left: 62, right: 16, top: 10, bottom: 44};

// Published values that are points of a column: {x, low, high, series, id, text}.
function crosses(result, x, y) {
  const all = objects(result.data), listed = objects(result.compare);
  return result.figure.points.filter(point => point.column === y).flatMap(point => {
    const row = all[+point.row], compared = listed.find(one => one.id === point.id && one.what === point.what);
    if (!row || !isFinite(leading(row[x]))) return [];
    return [{row, x: leading(row[x]), low: point.low === undefined ? 0 : +point.low, high: point.high === undefined ? Infinity : +point.high, series: row.series, id: point.id,
             text: `${point.id}: ${point.what}\n${compared ? `published ${compared.published} ${compared.unit}, simulated ${number(compared.simulated)}` : ""}`}];
  });
}

function scaleMake(log, domain, range) {
  return (log ? d3.scaleLog() : d3.scaleLinear()).domain(domain).range(range);
}

function extent(values, log) {
  const good = values.filter(value => isFinite(value) && (!log || value > 0));
  let [low, high] = [d3.min(good), d3.max(good)];
  if (low === undefined) return [log ? 1 : 0, 10];
  if (low === high) { low = log ? low / 2 : low - 1; high = log ? high * 2 : high + 1; }
  const pad = (high - low) * 0.04;
  return log ? [low / 1.08, high * 1.08] : [low >= 0 && low < 0.5 * high ? 0 : low - pad, high + pad];
}

// curves: [{name, colour, dashed, points: [{x, y, low, high}]}]; low and high of an interval, if there is one
function chartMake(options) {
  const {title, xTitle, yTitle, curves, marks = []} = options;
  const state = {xLog: options.xLog, yLog: options.yLog, hidden: new Set(), zoom: null};
  const svg = d3.create("svg").attr("class", "chart").attr("viewBox", `0 0 ${WIDTH} ${HEIGHT}`).attr("role", "img").attr("aria-label", title);
  const clip = `clip-${Math.random().toString(36).slice(2)}`;
  svg.append("clipPath").attr("id", clip).append("rect").attr("x", MARGIN.left).attr("y", MARGIN.top).attr("width", WIDTH - MARGIN.left - MARGIN.right).attr("height", HEIGHT - MARGIN.top - MARGIN.bottom);
  const axes = svg.append("g"), inside = svg.append("g").attr("clip-path", `url(#${clip})`);
  const legend = element("div", {class: "legend"});
  let scales;

  const shown = () => curves.filter(curve => !state.hidden.has(curve.name));
  function domains() {
    if (state.zoom) return state.zoom;
    const points = shown().flatMap(curve => curve.points), own = marks.filter(cross => !state.hidden.has(cross.series));
    return {x: extent(points.map(point => point.x), state.xLog),
            y: extent([...points.map(point => point.y), ...points.flatMap(point => [point.low, point.high]), ...own.flatMap(cross => [cross.low, cross.high])], state.yLog)};
  }
  function ticks(scale, log, bytes) {
    if (!bytes || !log) return d3.axisBottom(scale).ticks(7, log ? "~s" : undefined);
    const [low, high] = scale.domain(), powers = d3.range(Math.ceil(Math.log2(low)), Math.floor(Math.log2(high)) + 1);
    const step = Math.max(1, Math.ceil(powers.length / 8));
    return d3.axisBottom(scale).tickValues(powers.filter(power => power % step === 0).map(power => 2 ** power)).tickFormat(size);
  }
  function draw() {
    const {x: xDomain, y: yDomain} = domains();
    const x = scaleMake(state.xLog, xDomain, [MARGIN.left, WIDTH - MARGIN.right]), y = scaleMake(state.yLog, yDomain, [HEIGHT - MARGIN.bottom, MARGIN.top]);
    scales = {x, y};
    axes.selectAll("*").remove();
    axes.append("g").attr("class", "grid").attr("transform", `translate(0,${HEIGHT - MARGIN.bottom})`).call(ticks(x, state.xLog, options.xBytes).tickSize(-(HEIGHT - MARGIN.top - MARGIN.bottom)));
    axes.append("g").attr("class", "grid").attr("transform", `translate(${MARGIN.left},0)`).call(d3.axisLeft(y).ticks(7, state.yLog ? "~g" : undefined).tickSize(-(WIDTH - MARGIN.left - MARGIN.right)));
    axes.append("text").attr("x", (WIDTH + MARGIN.left) / 2).attr("y", HEIGHT - 8).attr("text-anchor", "middle").text(xTitle);
    axes.append("text").attr("transform", `translate(14,${HEIGHT / 2 - 10}) rotate(-90)`).attr("text-anchor", "middle").text(yTitle);
    inside.selectAll("*").remove();
    const fits = point => isFinite(point.x) && isFinite(point.y) && (!state.xLog || point.x > 0) && (!state.yLog || point.y > 0);
    const line = d3.line().defined(fits).x(point => x(point.x)).y(point => y(point.y));
    const band = d3.area().defined(point => fits(point) && (state.yLog ? point.low > 0 : isFinite(point.low))).x(point => x(point.x)).y0(point => y(point.low)).y1(point => y(point.high));
    for (const curve of shown()) {
      if (curve.points.some(point => isFinite(point.low))) inside.append("path").attr("class", "band").attr("fill", curve.colour).attr("fill-opacity", 0.18).attr("stroke", "none").attr("d", band(curve.points));
      inside.append("path").attr("fill", "none").attr("stroke", curve.colour).attr("stroke-width", 1.8).attr("stroke-dasharray", curve.dashed ? "6 4" : null).attr("d", line(curve.points));
      inside.append("g").selectAll("circle").data(curve.points.filter(fits)).join("circle").attr("class", "point").attr("r", 3).attr("fill", curve.dashed ? "none" : curve.colour).attr("stroke", curve.colour)
        .attr("cx", point => x(point.x)).attr("cy", point => y(point.y)).attr("data-series", curve.name).attr("data-x", point => point.x).attr("data-y", point => point.y);
    }
    for (const cross of marks.filter(one => !state.hidden.has(one.series))) crossDraw(cross, x, y);
  }
  function crossDraw(cross, x, y) {
    const [least, most] = y.domain();
    if (cross.high < least || cross.low > most) return; // zoomed away
    const curve = curves.find(one => one.name === cross.series && !one.dashed), colour = curve ? curve.colour : "currentColor";
    const group = inside.append("g").attr("class", "published").attr("stroke", colour).attr("stroke-width", 2).attr("data-id", cross.id);
    const top = y(Math.min(cross.high, y.domain()[1])), bottom = y(Math.max(cross.low, y.domain()[0])), at = x(cross.x);
    if (bottom - top > 2) {
      group.append("path").attr("d", `M${at} ${top}V${bottom}M${at - 5} ${top}h10M${at - 5} ${bottom}h10`);
    } else {
      group.append("path").attr("d", `M${at - 6} ${top - 6}l12 12m0 -12l-12 12`);
    }
    group.on("mousemove", () => tipShow(d3.event, cross.text)).on("mouseleave", tipHide);
    group.append("rect").attr("x", at - 8).attr("y", top - 8).attr("width", 16).attr("height", bottom - top + 16).attr("fill", "transparent").attr("stroke", "none");
  }
  // The nearest point of each curve, as far as no other is clearly nearer.
  function nearest(px, py) {
    const found = shown().map(curve => {
      const away = point => Math.hypot(scales.x(point.x) - px, scales.y(point.y) - py), best = curve.points[d3.scan(curve.points, (a, b) => away(a) - away(b))];
      return {curve, point: best, distance: away(best)};
    });
    const least = d3.min(found, one => one.distance);
    return found.filter(one => one.distance < 40 && one.distance <= least + 3).slice(0, 6);
  }
  svg.on("mousemove", function () {
    if (d3.event.target.closest && d3.event.target.closest(".published")) return;
    const [px, py] = d3.mouse(this), found = nearest(px, py);
    if (found.length === 0) { tipHide(); return; }
    tipShow(d3.event, found.map(({curve, point}) => `${curve.name}\n${xTitle}: ${options.xBytes ? size(point.x) : point.label || number(point.x)}\n${yTitle}: ${number(point.y, 6)}${isFinite(point.low) ? ` (${number(point.low)} to ${number(point.high)} in 90 % of the draws)` : ""}`).join("\n"));
  }).on("mouseleave", tipHide);
  svg.call(d3.drag().filter(() => !d3.event.button).on("start", function () { state.from = d3.mouse(this); })
    .on("drag", function () { rubber(state.from, d3.mouse(this)); })
    .on("end", function () { zoomTo(state.from, d3.mouse(this)); }));
  svg.on("dblclick", () => { state.zoom = null; draw(); });
  function rubber(a, b) {
    svg.selectAll(".rubber").data([0]).join("rect").attr("class", "rubber").attr("fill", "#6cb6ff33").attr("x", Math.min(a[0], b[0])).attr("y", Math.min(a[1], b[1])).attr("width", Math.abs(a[0] - b[0])).attr("height", Math.abs(a[1] - b[1]));
  }
  function zoomTo(a, b) {
    svg.selectAll(".rubber").remove();
    if (Math.abs(a[0] - b[0]) < 8 || Math.abs(a[1] - b[1]) < 8) return;
    const xs = [a[0], b[0]].map(scales.x.invert).sort(d3.ascending), ys = [a[1], b[1]].map(scales.y.invert).sort(d3.ascending);
    state.zoom = {x: xs, y: ys};
    draw();
  }
  for (const curve of curves) {
    legend.append(element("button", {type: "button", "aria-pressed": "true", onclick: event => {
      if (!state.hidden.delete(curve.name)) state.hidden.add(curve.name);
      event.currentTarget.setAttribute("aria-pressed", String(!state.hidden.has(curve.name)));
      draw();
    }}, element("i", {style: `background:${curve.dashed ? `repeating-linear-gradient(90deg,${curve.colour} 0 5px,transparent 5px 8px)` : curve.colour}`}), curve.name));
  }
  const toggle = (name, key) => element("button", {type: "button", class: "tool", onclick: () => { state[key] = !state[key]; state.zoom = null; draw(); }}, name);
  draw();
  return element("figure", {class: "interactive"}, element("figcaption", {}, title),
    element("div", {class: "tools"}, toggle("x log / linear", "xLog"), toggle("y log / linear", "yLog"),
      element("button", {type: "button", class: "tool", onclick: () => { state.zoom = null; draw(); }}, "whole")), svg.node(), legend);
}

// A value for each series: bars, with their published values.
function barsMake({title, yTitle, curves, marks = []}) {
  const left = 200, line = 24, height = curves.length * line + 46, high = d3.max([...curves.flatMap(({points: [point]}) => [point.y, point.high]), ...marks.map(cross => isFinite(cross.high) ? cross.high : cross.low)]);
  const x = d3.scaleLinear().domain([0, high * 1.05]).range([left, WIDTH - MARGIN.right]), svg = d3.create("svg").attr("class", "chart").attr("viewBox", `0 0 ${WIDTH} ${height}`);
  svg.append("g").attr("class", "grid").attr("transform", `translate(0,${height - 40})`).call(d3.axisBottom(x).ticks(6).tickSize(-(height - 44)));
  svg.append("text").attr("x", (WIDTH + left) / 2).attr("y", height - 6).attr("text-anchor", "middle").text(yTitle);
  curves.forEach((curve, i) => {
    const point = curve.points[0];
    svg.append("text").attr("x", left - 6).attr("y", i * line + 19).attr("text-anchor", "end").text(curve.name.length > 30 ? `${curve.name.slice(0, 29)}…` : curve.name);
    svg.append("rect").attr("class", "bar").attr("x", left).attr("y", i * line + 6).attr("width", x(point.y) - left).attr("height", line - 8).attr("fill", curve.colour).attr("fill-opacity", curve.dashed ? 0.4 : 0.85).attr("data-y", point.y)
      .on("mousemove", () => tipShow(d3.event, `${curve.name}\n${yTitle}: ${number(point.y, 6)}`)).on("mouseleave", tipHide);
    if (isFinite(point.low)) svg.append("path").attr("class", "band").attr("fill", "none").attr("stroke", "var(--ink)").attr("d", `M${x(point.low)} ${i * line + line - 5}H${x(point.high)}`);
    for (const cross of marks.filter(one => one.series === curve.name)) {
      const from = x(cross.low), to = x(Math.min(cross.high, high * 1.05)), y = i * line + line / 2 + 2;
      svg.append("path").attr("class", "published").attr("data-id", cross.id).attr("fill", "none").attr("stroke", "var(--ink)").attr("stroke-width", 2)
        .attr("d", to - from > 2 ? `M${from} ${y}H${to}M${from} ${y - 6}v12M${to} ${y - 6}v12` : `M${from - 5} ${y - 5}l10 10m0 -10l-10 10`)
        .on("mousemove", () => tipShow(d3.event, cross.text)).on("mouseleave", tipHide);
    }
  });
  return element("figure", {class: "interactive"}, element("figcaption", {}, title), svg.node());
}

// What 90 % of the draws of `--interval` have; a bandwidth is bytes over the latency.
function intervalOf(row, y) {
  const {interval_low_us: low, interval_high_us: high} = row;
  if (typeof low !== "number" || typeof high !== "number") return {};
  if (y === "latency_us") return {low, high};
  return y === "bandwidth_GBps" && low > 0 ? {low: row[y] * row.latency_us / high, high: row[y] * row.latency_us / low} : {};
}

function curvesOf(rows, x, y, dashed, suffix, colours) {
  const groups = d3.nest().key(row => row.series).entries(rows);
  return groups.map(({key: name, values}) => {
    if (!colours.has(name)) colours.set(name, COLOURS[colours.size % COLOURS.length]);
    return {name: name + suffix, colour: colours.get(name), dashed,
            points: values.filter(row => typeof row[y] === "number").map(row => ({x: leading(row[x]), y: row[y], label: String(row[x]), ...intervalOf(row, y)})).filter(point => isFinite(point.x))};
  }).filter(curve => curve.points.length > 0);
}
