// Records in lanes by component on a canvas, so that 100,000 of them stay fluid, with arrows from causes to effects.

const LANE = 20, LABEL = 210, LANES_MOST = 40, ARROWS_MOST = 400;

// Gives each record the first free row of its lane; where more than ROWS_MOST overlap, they share the last one.
const ROWS_MOST = 4;
function rowsAssign(records) {
  const ends = new Map(), rows = new Map();
  for (const record of records) {
    const free = ends.get(record.lane) || [];
    let row = free.findIndex(end => end <= record.begin);
    if (row < 0) row = Math.min(free.length, ROWS_MOST - 1);
    free[row] = record.end;
    record.row = row;
    ends.set(record.lane, free);
    rows.set(record.lane, free.length);
  }
  return rows;
}

// The lanes of a node together, nodes and lanes in the order of their first record. The node of a component is the part
// before its first dot; for end 1 of a cable "node0.E-node1.W.1" it is node1.
// ranked: programs, root ports, devices' ports, devices, cables.
const RANKS = [/\.verbs$/, /\.root_complex$/, /\.slot\.0$/, /\.slot\.\d+$/, /^[^-]*$/];
function lanesOf(records, ranked) {
  const nodes = new Map();
  for (const record of records) {
    const far = /-([^.]+)\..*\.1$/.exec(record.lane), node = far ? far[1] : record.lane.split(".")[0];
    if (!nodes.has(node)) nodes.set(node, new Set());
    nodes.get(node).add(record.lane);
  }
  const rank = name => RANKS.findIndex(pattern => pattern.test(name)) >>> 0;
  return [...nodes.values()].flatMap(lanes => ranked ? [...lanes].sort((a, b) => rank(a) - rank(b)) : [...lanes]);
}

// What is seen: records in the order of begin, the part of time and lanes that is shown, what is found and selected.
class Lanes {
  constructor(records, ranked) {
    this.records = records;
    this.rows = rowsAssign(records);
    this.lanes = lanesOf(records, ranked);
    this.index = new Map(this.lanes.map((name, i) => [name, i]));
    for (const record of records) record.at = this.index.get(record.lane);
    this.longest = d3.max(records, record => record.end - record.begin);
    const end = d3.max(records, record => record.end), begin = records[0].begin, pad = Math.max((end - begin) * 0.01, 20);
    this.whole = [begin - pad, end + pad];
    this.view = {from: this.whole[0], to: this.whole[1], top: 0};
    this.height = Math.min(this.lanes.length, LANES_MOST) * LANE + 30;
    this.width = 1200;
    this.wanted = null; // a Set of records, or null for all
    this.selected = null;
    this.marked = {back: [], forward: []};
  }
  x(ps) { return LABEL + (ps - this.view.from) / (this.view.to - this.view.from) * (this.width - LABEL); }
  ps(x) { return this.view.from + (x - LABEL) / (this.width - LABEL) * (this.view.to - this.view.from); }
  // Where a record is: its top and height.
  y(record) {
    const height = (LANE - 5) / this.rows.get(record.lane);
    return [(record.at - this.view.top) * LANE + 3 + record.row * height, Math.max(height - (height > 5 ? 1 : 0), 2)];
  }
  first(ps) {
    let low = 0, high = this.records.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.records[middle].begin < ps) low = middle + 1; else high = middle;
    }
    return low;
  }
  *visible(slack = 0) {
    for (let i = this.first(this.view.from - this.longest - slack); i < this.records.length && this.records[i].begin <= this.view.to + slack; i++) {
      if (this.records[i].end + slack >= this.view.from) yield this.records[i];
    }
  }
  at(x, y) {
    const ps = this.ps(x), slack = (this.view.to - this.view.from) / (this.width - LABEL) * 3;
    let best = null, nearest = Infinity;
    for (let i = this.first(ps - this.longest - slack); i < this.records.length && this.records[i].begin <= ps + slack; i++) {
      const record = this.records[i];
      if (record.at !== Math.floor(y / LANE + this.view.top) || record.end + slack < ps) continue;
      const [top, height] = this.y(record), away = Math.max(top - y, y - top - height, 0) * slack + (record.end > record.begin ? record.end - record.begin : Math.abs(record.begin - ps));
      if (away < nearest) { nearest = away; best = record; }
    }
    return best;
  }
  select(record) {
    this.selected = record;
    this.marked = record ? {back: chainBack(record), forward: chainForward(record)} : {back: [], forward: []};
  }
  find(words) {
    this.wanted = words.length > 0 ? new Set(this.records.filter(record => words.every(word => record.words.includes(word)))) : null;
  }
  // Shows a record in the middle, or the whole chain that leads to it.
  show(record, whole) {
    const span = this.view.to - this.view.from, begin = this.marked.back[0].begin, wide = whole && begin < record.end;
    this.view.from = wide ? begin - (record.end - begin) * 0.1 : (record.begin + record.end) / 2 - span / 2;
    this.view.to = wide ? record.end + (record.end - begin) * 0.1 : this.view.from + span;
    this.zoom(0, 1);
    if (record.at < this.view.top || record.at >= this.view.top + LANES_MOST) this.move(0, record.at - this.view.top - LANES_MOST / 2);
  }
  move(ps, lanes) {
    this.view.from += ps; this.view.to += ps;
    this.view.top = Math.min(Math.max(this.view.top + lanes, 0), Math.max(this.lanes.length - LANES_MOST, 0));
  }
  zoom(x, scale) {
    const ps = this.ps(x);
    scale = Math.max(scale, 1000 / (this.view.to - this.view.from)); // not less than a nanosecond
    this.view.from = ps - (ps - this.view.from) * scale; this.view.to = ps + (this.view.to - ps) * scale;
  }
}

// --- drawing --------------------------------------------------------------------------------------------------------

function barsDraw(lanes, context, ink) {
  const last = new Float64Array(lanes.lanes.length * ROWS_MOST).fill(-9), marked = new Set([...lanes.marked.back, ...lanes.marked.forward]);
  const plain = marked.size === 0 && !lanes.wanted, strong = [];
  let linked = 0;
  context.globalAlpha = plain ? 1 : 0.25;
  for (const record of lanes.visible()) {
    linked += record.cause !== null;
    if (!plain && (marked.has(record) || (lanes.wanted && lanes.wanted.has(record)))) { strong.push(record); continue; }
    const x = lanes.x(record.begin), over = Math.max(lanes.x(record.end), x + 2), slot = record.at * ROWS_MOST + record.row;
    if (over < last[slot] + 1.5 || record.at < lanes.view.top - 1 || record.at >= lanes.view.top + LANES_MOST) continue; // nothing new at this scale
    last[slot] = over;
    const [y, height] = lanes.y(record);
    context.fillStyle = record.colour;
    context.fillRect(x, y, over - x, height);
  }
  context.globalAlpha = 1;
  for (const record of strong.slice(0, 20000)) {
    const x = lanes.x(record.begin), [y, height] = lanes.y(record);
    context.fillStyle = record.colour;
    context.fillRect(x, y, Math.max(lanes.x(record.end) - x, 2.5), height);
    if (record === lanes.selected) { context.strokeStyle = ink; context.lineWidth = 1.5; context.strokeRect(x - 1.5, y - 1.5, Math.max(lanes.x(record.end) - x, 2.5) + 3, height + 3); }
  }
  return linked;
}

function arrowDraw(lanes, context, cause, effect) {
  const [leaves, enters] = arrowTimes(cause, effect), [fromTop, fromHeight] = lanes.y(cause), [toTop, toHeight] = lanes.y(effect);
  const x0 = lanes.x(leaves), y0 = fromTop + fromHeight / 2, x1 = lanes.x(enters), y1 = toTop + toHeight / 2;
  if (x1 < LABEL - 50 || x0 > lanes.width + 50 || (Math.abs(x1 - x0) < 3 && cause.at === effect.at)) return 0;
  const head = context.lineWidth > 1 ? 6 : 4, bend = Math.min(Math.max((x1 - x0) / 2, 8), 60), angle = Math.atan2(y1 - y0, Math.max(x1 - x0, 1)) / 3;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
  context.stroke();
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - head * Math.cos(angle - 0.45), y1 - head * Math.sin(angle - 0.45));
  context.lineTo(x1 - head * Math.cos(angle + 0.45), y1 - head * Math.sin(angle + 0.45));
  context.fill();
  return 1;
}

function arrowsDraw(lanes, context, records, colour, width) {
  let drawn = 0;
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = width;
  for (const record of records) {
    if (record.cause && drawn < 2 * ARROWS_MOST) drawn += arrowDraw(lanes, context, record.cause, record);
  }
  return drawn;
}

function axisDraw(lanes, context, colour) {
  const ticks = d3.scaleLinear().domain([lanes.view.from / 1e3, lanes.view.to / 1e3]).ticks(6);
  context.fillStyle = colour;
  for (const tick of ticks) {
    const x = lanes.x(tick * 1e3);
    if (x >= LABEL && x < lanes.width - 70) { context.fillRect(x, lanes.height - 26, 1, 6); context.fillText(nsText(Math.round(tick * 1e3)), x + 3, lanes.height - 10); }
  }
}

function lanesDraw(lanes, canvas) {
  const ratio = window.devicePixelRatio || 1, style = getComputedStyle(document.documentElement), context = canvas.getContext("2d");
  const [ink, faint, line, back, forward] = ["--ink", "--faint", "--line", "--mark", "--good"].map(name => style.getPropertyValue(name));
  lanes.width = canvas.clientWidth || 1200;
  canvas.width = lanes.width * ratio; canvas.height = lanes.height * ratio; canvas.style.height = `${lanes.height}px`;
  context.scale(ratio, ratio);
  context.font = "11px sans-serif";
  context.beginPath(); context.rect(0, 0, lanes.width, lanes.height - 28); context.save(); context.clip();
  lanes.lanes.forEach((name, i) => {
    const y = (i - lanes.view.top) * LANE;
    context.fillStyle = line;
    context.fillRect(0, y + LANE, lanes.width, 1);
    context.fillStyle = ink;
    context.fillText(name.length > 34 ? `…${name.slice(-33)}` : name, 4, y + 14);
  });
  context.beginPath(); context.rect(LABEL, 0, lanes.width - LABEL, lanes.height - 28); context.clip();
  const linked = barsDraw(lanes, context, ink);
  let arrows = 0;
  if (lanes.selected) arrows = arrowsDraw(lanes, context, lanes.marked.forward.slice(1), forward, 1.5) + arrowsDraw(lanes, context, lanes.marked.back.slice(1), back, 1.8);
  else if (linked <= ARROWS_MOST) arrows = arrowsDraw(lanes, context, lanes.visible((lanes.view.to - lanes.view.from) / 2), faint, 1);
  context.restore();
  axisDraw(lanes, context, faint);
  canvas.dataset.arrows = arrows;
}
