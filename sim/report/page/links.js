// The links of a result: what each end sent in a series, as a share of what the link can carry, in a table and in the
// drawing of the fabric. A link's ends are the components NAME.0 and NAME.1.

const LINK_COUNTERS = {wire_bytes_sent: "bytes", wire_bytes: "bytes", tlps_sent: "packets", packets: "packets", replays: "replays"};
const SHARE = "The share is the bytes that an end put on the wire in a series (headers, framing, replays and DLLPs included), over what the link can carry in the series' simulated time, boot and warm-up included. " +
  "What it can carry follows from the scenario: generation, encoding and lanes, for InfiniBand the rate of the slower port.";
const shareColour = d3.interpolateRgbBasis(["#7f93a8", "#4a86c5", "#3aa17e", "#e0a100", "#d1341f"]);

// Of each series a map from links to {bytes, packets, replays} of both ends.
function linkUses(result) {
  const uses = new Map();
  for (const row of objects(result.counters)) {
    const what = LINK_COUNTERS[row.name], found = what && /^(.*)\.([01])$/.exec(row.component);
    if (!found || found[1].endsWith(".loopback")) continue;
    if (!uses.has(row.series)) uses.set(row.series, new Map());
    const links = uses.get(row.series), ends = links.get(found[1]) || [{}, {}];
    ends[found[2]][what] = row.value;
    links.set(found[1], ends);
  }
  return uses;
}

// A row of the table: both directions of a link in a series.
function linkRow(link, series, ends, ps) {
  const rates = ends.map(end => (end.bytes || 0) / ps * 1000), shares = rates.map(rate => link.capacity_GBps > 0 ? rate / link.capacity_GBps : NaN);
  return {link: link.name, kind: link.kind, series, capacity: link.capacity_GBps, what: link.what, names: link.ends, ends, rates, shares, rate: Math.max(...rates), share: Math.max(...shares)};
}

function percentText(share) { return isFinite(share) ? `${number(share * 100, 3)} %` : ""; }

function linkText(row) {
  const infiniband = row.kind === "InfiniBand cable", can = row.capacity > 0 ? `, ${number(row.capacity, 4)} GB/s in each direction` : "";
  const directions = row.ends.map((end, i) => `${row.names[i]} → ${row.names[1 - i]}: ${number(row.rates[i], 4)} GB/s${row.capacity > 0 ? `, ${percentText(row.shares[i])}` : ""}, ${number(end.packets || 0)} ${infiniband ? "packets" : `TLPs, ${number(end.replays || 0)} replays`}`);
  if (row.busiest) directions.push(`in the series ${row.series}`);
  return [`${row.link}: ${[row.kind, row.what].filter(text => text).join(", ")}${can}`, ...directions].join("\n");
}

// Of what stands for several links.
function linksText(rows, name) {
  const most = d3.scan(rows, (a, b) => b.share - a.share), mean = d3.mean(rows.flatMap(row => row.shares)) || 0;
  return `${name ? `${name}: ` : ""}stands for ${rows.length} links\nlargest share ${percentText(rows[most].share)}, mean of all directions ${percentText(mean)}\n\n` +
    (rows.length <= 4 ? rows.map(linkText).join("\n") : linkText(rows[most]));
}

// {links, drawing} of the machine of a series: of a sweep, that of its value, with which the series' name ends; "": of its
// first one.
function machineOf(result, series) {
  return result.links ? result : (series === "" ? list(result.values)[0] : valueOf(result, series)) || {};
}

// The links with their use in a series; "" is each link's series with the largest share of what it can carry there.
function linkRows(result, uses, series) {
  const runs = new Map(list((result.manifest || {}).runs).map(run => [run.series, +run.simulated_ps]));
  const unknown = [...new Set([...uses.values()].flatMap(links => [...links.keys()]))].map(name => ({name, kind: "", what: "", ends: [`${name}.0`, `${name}.1`]}));
  const chosen = (series === "" ? [...uses.keys()] : [series]).filter(name => runs.get(name) > 0);
  const rows = chosen.flatMap(name => (machineOf(result, name).links || unknown).map(link => linkRow(link, name, (uses.get(name) || new Map()).get(link.name) || [{}, {}], runs.get(name))));
  const busiest = new Map();
  const use = row => isFinite(row.share) ? row.share : row.rate;
  for (const row of rows) if (!busiest.has(row.link) || use(busiest.get(row.link)) < use(row)) busiest.set(row.link, {...row, busiest: series === ""});
  return [...busiest.values()];
}

// --- the drawing ----------------------------------------------------------------------------------------------------

// Half of a line, or all of it (half 2), as dashes in thousandths of its length.
function dashes(half, dashed) {
  const begin = half === 1 ? 500 : 0, length = half === 2 ? 1000 : 500, piece = dashed ? 50 : length, parts = [];
  for (let at = 0; at < length; at += piece) parts.push(dashed ? piece * 0.7 : piece, dashed ? piece * 0.3 : 0);
  return begin > 0 ? `0 ${begin} ${parts.join(" ")} 0 1000` : `${parts.join(" ")} 0 1000`;
}

function lineShade(line, half, share, scale) {
  const part = line.cloneNode(false), dashed = line.hasAttribute("stroke-dasharray");
  for (const name of ["data-link", "data-links", "stroke-opacity"]) part.removeAttribute(name);
  for (const [name, value] of Object.entries({class: "use", pathLength: 1000, "stroke-dasharray": dashes(half, dashed), stroke: scale.colour(share), "stroke-width": scale.width(share)})) part.setAttribute(name, value);
  line.before(part);
}

// An element of the drawing by the use of its links. rows: of these links.
function shapeShade(shape, rows, scale) {
  const line = shape.tagName === "path", share = d3.max(rows, row => row.share) || 0;
  if (line && shape.dataset.link) [0, 1].forEach(half => lineShade(shape, half, rows[0].shares[half], scale));
  else if (line) lineShade(shape, 2, share, scale);
  else { shape.setAttribute("stroke", scale.colour(share)); shape.setAttribute("stroke-width", 1 + scale.width(share) / 2); }
}

function linksOf(shape) { return (shape.dataset.link || shape.dataset.links).split(" "); }

// choose(names) is called on a click.
function fabricNode(drawing, rows, scale, choose) {
  const byName = new Map(rows.map(row => [row.link, row]));
  const svg = document.importNode(new DOMParser().parseFromString(drawing, "image/svg+xml").documentElement, true);
  for (const shape of svg.querySelectorAll("[data-link], [data-links]")) {
    const own = linksOf(shape).map(name => byName.get(name)).filter(row => row);
    if (own.length === 0) continue;
    shapeShade(shape, own, scale);
    shape.classList.add("hit");
    shape.addEventListener("mousemove", event => tipShow(event, shape.dataset.link ? linkText(own[0]) : linksText(own, shape.dataset.name)));
    shape.addEventListener("mouseleave", tipHide);
    shape.addEventListener("click", () => choose(linksOf(shape)));
  }
  return svg;
}

function scaleOf(rows) {
  const top = d3.max(rows, row => row.share) || 0;
  return {top, colour: share => share > 0 ? shareColour(share / top) : "var(--faint)", width: share => share > 0 ? 2 + 7 * share / top : 1.5};
}

function fabricLegend(scale) {
  const stops = d3.range(0, 1.01, 0.1).map(shareColour).join(",");
  return element("p", {class: "scale"}, "0 % ", element("i", {style: `background:linear-gradient(90deg,${stops})`}), ` ${percentText(scale.top) || "0 %"} of what a link can carry, thin grey: nothing was sent. → is what the end named first sends, of a slot the host; each half of a line is what the end beside it sends. ` +
    "What stands for several links has the colour of the largest share: a disc for the slots of a node, a switch for its cables, a box for the cables of boards in it, a line with a number for so many cables.");
}

// --- both -----------------------------------------------------------------------------------------------------------

const LINK_COLUMNS = [{name: "link", title: "Link"}, {name: "series", title: "Series"},
  ...[0, 1].flatMap(i => [{name: `rate${i}`, title: `${i === 0 ? "→" : "←"} [GB/s]`, number: true, cell: row => number(row.rates[i], 4), sort: row => row.rates[i]},
    {name: `share${i}`, title: `${i === 0 ? "→" : "←"} share`, number: true, cell: row => percentText(row.shares[i]), sort: row => row.shares[i]}]),
  {name: "packets", title: "TLPs, packets", number: true, cell: row => row.ends.map(end => number(end.packets || 0)).join(" / "), sort: row => d3.sum(row.ends, end => end.packets || 0)},
  {name: "replays", title: "Replays", number: true, cell: row => number(d3.sum(row.ends, end => end.replays || 0)), sort: row => d3.sum(row.ends, end => end.replays || 0)}];

function linksFill(result, uses, series, holder) {
  const rows = linkRows(result, uses, series).sort((a, b) => (b.share || 0) - (a.share || 0) || b.rate - a.rate), scale = scaleOf(rows), count = element("span");
  let chosen = new Set();
  function mark() {
    const lines = new Set([...holder.querySelectorAll(".hit[data-link]")].map(shape => shape.dataset.link));
    for (const shape of holder.querySelectorAll(".hit")) { // a switch beside a chosen line is not meant
      const names = linksOf(shape);
      shape.classList.toggle("chosen", names.every(name => chosen.has(name)) || names.some(name => chosen.has(name) && !lines.has(name)));
    }
    for (const line of holder.querySelectorAll("tr[data-link]")) line.classList.toggle("chosen", chosen.has(line.dataset.link));
  }
  function choose(names, fromDrawing) {
    chosen = new Set(names.every(name => chosen.has(name)) ? [] : names);
    mark();
    if (!fromDrawing || chosen.size === 0) return;
    if (holder.querySelectorAll("tr.chosen").length < chosen.size) { // not all are shown
      words.value = "";
      table.filter(row => chosen.has(row.link));
    }
    const line = holder.querySelector("tr.chosen"), box = line && line.closest(".scroll");
    if (box) box.scrollTop = line.offsetTop - box.clientHeight / 3;
  }
  const table = tableMake(rows, LINK_COLUMNS, {most: 1000, count, line: (row, line) => {
    line.dataset.link = row.link;
    line.classList.toggle("chosen", chosen.has(row.link));
    line.addEventListener("click", () => choose([row.link], false));
  }});
  const {drawing, value} = machineOf(result, series);
  const words = element("input", {type: "search", placeholder: "filter: node0 slot", oninput: () => table.filter(wordsFilter(words.value))});
  holder.replaceChildren(drawing ? element("div", {class: "fabric"}, fabricNode(drawing, rows, scale, names => choose(names, true))) : "",
    drawing ? fabricLegend(scale) : "", value !== undefined && series === "" ? element("p", {}, `Drawn is the machine of ${value}.`) : "",
    !drawing && result.topology ? element("img", {src: result.topology, alt: "topology"}) : "",
    element("div", {class: "tools"}, words, count), element("div", {class: "scroll"}, table.node));
}

function linksNode(result) {
  const uses = linkUses(result), holder = element("div"), select = element("select", {class: "series"});
  if (uses.size === 0) return null;
  select.append(...[...uses.keys()].map(name => element("option", {value: name}, name)), element("option", {value: ""}, "each link's busiest series"));
  const draw = () => linksFill(result, uses, select.value, holder), details = element("details", {class: "links"}, element("summary", {}, "Links and their use"),
    element("p", {}, result.links || result.values ? SHARE : "These results have no resolved.yaml that can be read here, so that only rates are known: bytes on the wire over the simulated time of a series."),
    element("div", {class: "tools"}, "series", select), holder);
  select.addEventListener("change", draw);
  details.addEventListener("toggle", () => { if (details.open && !holder.hasChildNodes()) draw(); });
  const machine = machineOf(result, select.value);
  if (machine.drawing && machine.links.length <= 200) { details.open = true; draw(); }
  return details;
}
