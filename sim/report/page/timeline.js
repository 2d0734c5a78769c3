// The critical path of an operation (breakdown.csv of `tcasim explain`) and recorded events (trace.csv): bars by part of
// the latency, and lanes by component on a canvas, so that 100,000 records stay fluid.

const LANE = 20, LABEL = 190;

function stackedNode(records) {
  const series = [...new Set(records.map(record => record.series))], parts = [...new Set(records.map(record => record.part))];
  const sums = series.map(name => parts.map(part => d3.sum(records.filter(record => record.series === name && record.part === part), record => record.duration_ps) / 1e3));
  const height = 46 + 34 * series.length, x = d3.scaleLinear().domain([0, d3.max(sums, one => d3.sum(one))]).range([150, WIDTH * 1.6 - 16]);
  const svg = d3.create("svg").attr("class", "chart").attr("viewBox", `0 0 ${WIDTH * 1.6} ${height}`), opened = element("div");
  series.forEach((name, i) => {
    let begin = 0;
    svg.append("text").attr("x", 142).attr("y", 26 + 34 * i).attr("text-anchor", "end").text(name.length > 20 ? `${name.slice(0, 19)}…` : name);
    parts.forEach((part, k) => {
      const ns = sums[i][k];
      svg.append("rect").attr("class", "part").attr("x", x(begin)).attr("y", 10 + 34 * i).attr("width", x(begin + ns) - x(begin)).attr("height", 24).attr("fill", COLOURS[k % COLOURS.length]).style("cursor", "pointer")
        .on("mousemove", () => tipShow(d3.event, `${name}\n${part}: ${number(ns, 6)} ns of ${number(d3.sum(sums[i]), 6)} ns`)).on("mouseleave", tipHide)
        .on("click", () => opened.replaceChildren(element("h3", {}, `${name}: ${part}`), piecesTable(records.filter(record => record.series === name && record.part === part))));
      begin += ns;
    });
  });
  svg.append("g").attr("transform", `translate(0,${height - 26})`).call(d3.axisBottom(x).ticks(8));
  svg.append("text").attr("x", WIDTH * 0.9).attr("y", height - 1).attr("text-anchor", "middle").text("ns");
  return element("div", {}, svg.node(), element("div", {class: "legend"}, ...parts.map((part, k) => element("span", {}, element("i", {style: `background:${COLOURS[k % COLOURS.length]}`}), part))), opened);
}

function piecesTable(records) {
  return tableMake(records, [{name: "detail", title: "Piece"}, {name: "component", title: "Component"}, {name: "begin_ps", title: "Begin [ns]", number: true, cell: record => number(record.begin_ps / 1e3, 9)},
    {name: "duration_ps", title: "Duration [ns]", number: true, cell: record => number(record.duration_ps / 1e3, 9)}]).node;
}

// records: {lane, begin, end, text, colour, group} in ps, in order of begin; arrows join records of a group.
function lanesNode(records, arrows) {
  const lanes = [...new Set(records.map(record => record.lane))].sort((a, b) => records.find(one => one.lane === a).begin - records.find(one => one.lane === b).begin);
  const lane = new Map(lanes.map((name, i) => [name, i]));
  const canvas = element("canvas", {class: "timeline", tabindex: "0"}), search = element("input", {type: "search", placeholder: "find: tag=32, qpn=4, MRd"}), found = element("span");
  const whole = [records[0].begin, d3.max(records, record => record.end)], view = {from: whole[0], to: whole[1] > whole[0] ? whole[1] : whole[0] + 1000};
  let wanted = null, width = 1200;
  const height = Math.min(lanes.length, 40) * LANE + 30;
  const toX = ps => LABEL + (ps - view.from) / (view.to - view.from) * (width - LABEL), toPs = x => view.from + (x - LABEL) / (width - LABEL) * (view.to - view.from);
  const first = ps => d3.bisector(record => record.begin).left(records, ps);
  const longest = d3.max(records, record => record.end - record.begin);
  function draw() {
    const ratio = window.devicePixelRatio || 1, style = getComputedStyle(document.documentElement), context = canvas.getContext("2d");
    width = canvas.clientWidth || 1200;
    canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = `${height}px`;
    context.scale(ratio, ratio);
    context.font = "11px sans-serif";
    context.fillStyle = style.getPropertyValue("--ink");
    lanes.slice(0, 40).forEach((name, i) => context.fillText(name.length > 30 ? `…${name.slice(-29)}` : name, 4, i * LANE + 14));
    context.save();
    context.beginPath(); context.rect(LABEL, 0, width - LABEL, height); context.clip();
    const drawn = new Set();
    for (let i = first(view.from - longest); i < records.length && records[i].begin <= view.to; i++) {
      const record = records[i], row = lane.get(record.lane);
      if (row >= 40 || record.end < view.from) continue;
      const x = toX(record.begin), w = Math.max(toX(record.end) - x, 2), key = `${row}:${Math.round(x)}:${Math.round(w)}`;
      if (drawn.has(key) && !(wanted && wanted(record))) continue; // nothing new at this scale
      drawn.add(key);
      context.globalAlpha = wanted && !wanted(record) ? 0.25 : 1;
      context.fillStyle = record.colour;
      context.fillRect(x, row * LANE + 3, w, LANE - 6);
    }
    context.globalAlpha = 1;
    if (arrows) arrowsDraw(context, style);
    context.restore();
    axisDraw(context, style);
  }
  function arrowsDraw(context, style) {
    context.strokeStyle = style.getPropertyValue("--faint");
    context.beginPath();
    for (let i = 1; i < records.length; i++) {
      const a = records[i - 1], b = records[i];
      if (a.group !== b.group || a.lane === b.lane || b.begin < view.from || a.end > view.to) continue;
      context.moveTo(toX(a.end), lane.get(a.lane) * LANE + LANE / 2);
      context.lineTo(toX(b.begin), lane.get(b.lane) * LANE + LANE / 2);
    }
    context.stroke();
  }
  function axisDraw(context, style) {
    context.fillStyle = style.getPropertyValue("--faint");
    for (const tick of d3.scaleLinear().domain([view.from / 1e3, view.to / 1e3]).ticks(8)) {
      const x = toX(tick * 1e3);
      if (x >= LABEL) { context.fillRect(x, height - 24, 1, 6); context.fillText(`${number(tick, 9)} ns`, x + 2, height - 8); }
    }
  }
  function at(event) {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, row = Math.floor((event.clientY - box.top) / LANE), ps = toPs(x);
    const slack = (view.to - view.from) / (width - LABEL) * 3;
    for (let i = first(ps - longest - slack); i < records.length && records[i].begin <= ps + slack; i++) {
      if (lane.get(records[i].lane) === row && records[i].end + slack >= ps) return records[i];
    }
    return null;
  }
  canvas.addEventListener("mousemove", event => {
    if (event.buttons === 1) {
      const by = -event.movementX / (width - LABEL) * (view.to - view.from);
      view.from += by; view.to += by;
      draw();
      return;
    }
    const record = at(event);
    if (record) tipShow(event, `${record.text}\n${number(record.begin / 1e3, 12)} ns${record.end > record.begin ? `, for ${number((record.end - record.begin) / 1e3, 9)} ns` : ""}`); else tipHide();
  });
  canvas.addEventListener("mouseleave", tipHide);
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const ps = toPs(event.clientX - canvas.getBoundingClientRect().left), scale = event.deltaY > 0 ? 1.25 : 0.8;
    if ((view.to - view.from) * scale < 1000) return; // a nanosecond
    view.from = ps - (ps - view.from) * scale; view.to = ps + (view.to - ps) * scale;
    draw();
  }, {passive: false});
  canvas.addEventListener("dblclick", () => { [view.from, view.to] = whole; draw(); });
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(word => word);
    wanted = words.length > 0 ? record => words.every(word => record.text.toLowerCase().includes(word)) : null;
    found.textContent = wanted ? `${records.filter(wanted).length} found` : "";
    draw();
  });
  new ResizeObserver(draw).observe(canvas);
  return element("div", {}, element("div", {class: "tools"}, search, found, "wheel: zoom, drag: move, double click: whole"), canvas);
}

function breakdownRecords(table) {
  const records = objects(table), parts = [...new Set(records.map(record => record.part))];
  return records.map(record => ({lane: record.component, begin: record.begin_ps, end: record.end_ps, group: record.series, series: record.series,
    colour: COLOURS[parts.indexOf(record.part) % COLOURS.length], text: `${record.component}: ${record.detail} (${record.part})`}));
}

function traceRecords(table) {
  const kinds = [];
  return objects(table).map(row => {
    const kind = row.kind || row.point;
    if (!kinds.includes(kind)) kinds.push(kind);
    const details = table.columns.slice(3).filter(name => row[name] !== "").map(name => name === "details" ? row[name] : `${name}=${row[name]}`).join(" ");
    return {lane: row.component, begin: row.time_ps, end: row.time_ps, series: row.series, colour: COLOURS[kinds.indexOf(kind) % COLOURS.length], text: `${row.component}: ${details}`};
  }).sort((a, b) => a.begin - b.begin);
}

function bySeries(title, records, arrows) {
  const names = [...new Set(records.map(record => record.series))], choice = element("select"), holder = element("div");
  choice.append(...names.map(name => element("option", {value: name}, name)));
  const draw = () => holder.replaceChildren(lanesNode(records.filter(record => record.series === choice.value), arrows));
  choice.addEventListener("change", draw);
  draw();
  return element("div", {}, element("h3", {}, title), element("div", {class: "tools"}, "series", choice), holder);
}

function timelineNode(result) {
  const parts = [], has = table => table && table.rows.length > 0;
  if (!has(result.breakdown) && !has(result.trace)) return null;
  if (has(result.breakdown)) parts.push(element("h3", {}, "Where the time goes"), stackedNode(objects(result.breakdown)), bySeries("The critical path", breakdownRecords(result.breakdown), true));
  if (has(result.trace)) parts.push(bySeries(`Recorded events (${result.trace.rows.length})`, traceRecords(result.trace), false));
  return element("div", {class: "timelines"}, ...parts);
}
