// The critical path of an operation (breakdown.csv of `tcasim explain`) and recorded events (trace.csv): bars by part of
// the latency, and timelines with lanes by component.

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

// A timeline of records {lane, begin, end, text, colour, cause, effects, starts} in the order of begin, times in ps.
function lanesNode(records, ranked, hint) {
  for (const record of records) record.words = record.text.toLowerCase();
  const lanes = new Lanes(records, ranked), found = element("span", {class: "found"}), chain = element("div");
  const canvas = element("canvas", {class: "timeline", tabindex: "0"}), search = element("input", {type: "search", placeholder: "find: tag=32, qp=4, MRd"});
  let next = -1, pressed = null, due = false;
  const draw = () => lanesDraw(lanes, canvas);
  // Pointers may move more often than the screen changes.
  function drawSoon() {
    if (!due) requestAnimationFrame(() => { due = false; draw(); });
    due = true;
  }
  // moves: "record" or "chain" is to be seen as a whole; null: the view stays.
  function select(record, moves) {
    lanes.select(record);
    chain.replaceChildren(record && (record.cause || record.effects.length > 0) ? chainNode(record, select) : "");
    canvas.dataset.selected = record ? record.text : "";
    if (moves) lanes.show(record, moves === "chain");
    draw();
  }
  function place(event) {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
  canvas.addEventListener("mousedown", event => { pressed = [event.clientX, event.clientY]; });
  canvas.addEventListener("mousemove", event => {
    if (event.buttons === 1) {
      lanes.move(-event.movementX / (lanes.width - LABEL) * (lanes.view.to - lanes.view.from), -event.movementY / LANE);
      drawSoon();
      return;
    }
    const record = lanes.at(...place(event));
    if (record) tipShow(event, recordText(record)); else tipHide();
  });
  canvas.addEventListener("mouseleave", tipHide);
  canvas.addEventListener("click", event => {
    if (pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) < 4) select(lanes.at(...place(event)), null);
  });
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    lanes.zoom(place(event)[0], event.deltaY > 0 ? 1.25 : 0.8);
    drawSoon();
  }, {passive: false});
  canvas.addEventListener("dblclick", () => { [lanes.view.from, lanes.view.to] = lanes.whole; draw(); });
  canvas.addEventListener("keydown", event => { if (event.key === "Escape") select(null, null); });
  search.addEventListener("input", () => {
    lanes.find(search.value.toLowerCase().split(/\s+/).filter(word => word));
    next = -1;
    found.textContent = lanes.wanted ? `${lanes.wanted.size} found` : "";
    draw();
  });
  search.addEventListener("keydown", event => {
    if (event.key !== "Enter" || !lanes.wanted || lanes.wanted.size === 0) return;
    next = (next + (event.shiftKey ? lanes.wanted.size - 1 : 1)) % lanes.wanted.size;
    const record = [...lanes.wanted][next];
    found.textContent = `${next + 1} of ${lanes.wanted.size} found`;
    select(record, "chain");
  });
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return element("div", {class: "lanes"}, element("div", {class: "tools"}, search, found, "wheel: zoom, drag: move, double click: whole, click: its causes and effects, enter in the field: next found"),
    hint ? element("p", {class: "hint"}, hint) : "", canvas, chain);
}

// The pieces of a path: each follows from the one before.
function breakdownRecords(table) {
  const rows = objects(table), parts = [...new Set(rows.map(row => row.part))];
  const records = rows.map(row => ({lane: String(row.component), begin: row.begin_ps, end: row.end_ps, series: row.series, cause: null, effects: [], starts: false,
    colour: COLOURS[parts.indexOf(row.part) % COLOURS.length], text: `${row.component}: ${row.detail} (${row.part})`}));
  records.forEach((record, i) => { if (i > 0 && records[i - 1].series === record.series) causeSet(record, records[i - 1]); });
  return records;
}

// Which record of a trace ends what another one began.
const ENDS = {tlp_received: "tlp_sent", ib_received: "ib_sent", work_ends: "work_begins"};

// A program's call, or a store or load without one: a request that a root port sends and did not get from another port.
function startsOf(row, cause) {
  const calls = one => String(one.component).endsWith(".verbs");
  if (calls(row)) return true;
  if (cause && calls(cause)) return false;
  const request = row.point === "tlp_sent" && (row.kind === "MWr" || row.kind === "MRd") && String(row.component).endsWith(".slot.0");
  return request && !(cause && cause.point === "tlp_received" && cause.kind === row.kind && cause.address === row.address);
}

function traceRecords(table) {
  const kinds = [], rows = objects(table), byNumber = new Map(), last = new Map(), hidden = ["number", "cause"];
  const records = rows.map(row => {
    const kind = row.kind || row.point, took = /(?:^| )took_ps=(\d+)/.exec(row.details);
    if (!kinds.includes(kind)) kinds.push(kind);
    const details = table.columns.slice(3).filter(name => row[name] !== "" && !hidden.includes(name)).map(name => name === "details" || name === "point" ? row[name] : `${name}=${row[name]}`).join(" ");
    const record = {lane: String(row.component), begin: row.time_ps - (took ? +took[1] : 0), end: row.time_ps, series: row.series, cause: null, effects: [], starts: false,
      colour: COLOURS[kinds.indexOf(kind) % COLOURS.length], text: `${row.component}: ${details}`};
    const lane = `${row.series} ${row.component}`, found = [record, row, last.get(lane)]; // and the one before on its lane
    last.set(lane, found);
    if (row.number) byNumber.set(`${row.series} ${row.number}`, found);
    return record;
  });
  // What is stored between two calls has the later one as its cause, which begins after it: it follows from the one before.
  function causeOf(row, end) {
    let found = row.cause ? byNumber.get(`${row.series} ${row.cause}`) : null;
    while (found && found[0].begin > end) found = found[2];
    return found || [null];
  }
  rows.forEach((row, i) => {
    const [cause, from] = causeOf(row, records[i].end);
    records[i].starts = startsOf(row, from);
    if (!cause || cause === records[i]) return;
    causeSet(records[i], cause);
    if (ENDS[row.point] === from.point && cause.end === cause.begin) cause.end = records[i].begin;
  });
  return records.sort((a, b) => a.begin - b.begin);
}

function bySeries(title, records, ranked, hint) {
  const names = [...new Set(records.map(record => record.series))], choice = element("select"), holder = element("div");
  choice.append(...names.map(name => element("option", {value: name}, name)));
  const draw = () => holder.replaceChildren(lanesNode(records.filter(record => String(record.series) === choice.value), ranked, hint));
  choice.addEventListener("change", draw);
  draw();
  return element("div", {}, element("h3", {}, title), element("div", {class: "tools"}, "series", choice), holder);
}

function timelineNode(result) {
  const parts = [], has = table => table && table.rows.length > 0;
  if (!has(result.breakdown) && !has(result.trace)) return null;
  if (has(result.breakdown)) parts.push(element("h3", {}, "Where the time goes"), stackedNode(objects(result.breakdown)), bySeries("The critical path", breakdownRecords(result.breakdown), false, null));
  if (has(result.trace)) parts.push(bySeries(`Recorded events (${result.trace.rows.length})`, traceRecords(result.trace), true,
    result.trace.columns.includes("cause") ? null : "The records have no causes: tcasim run or exec with --trace-causes writes them."));
  return element("div", {class: "timelines"}, ...parts);
}
