// What all parts of the page use: elements, numbers, tables as objects, the tip beside the pointer.

const results = JSON.parse(document.getElementById("results").textContent);
const FIXED = ["series", "bytes", "latency_us", "bandwidth_GBps", "descriptors", "operations", "min_latency_us", "max_latency_us", "sweep", "ranks", "memory_MB", "interval_low_us", "interval_high_us"];
const AXES = {bytes: "Size [bytes]", latency_us: "Latency [µs]", bandwidth_GBps: "Bandwidth [GB/s]", descriptors: "Descriptors", ranks: "Ranks", memory_MB: "Memory [MB]"};
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8a8a8a", "#882255", "#44AA99", "#999933"];

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

// What should be a list, of a file that may be anything.
function list(value) { return Array.isArray(value) ? value : []; }

// Rows of a table {columns, rows} as objects.
function objects(table) {
  return table ? table.rows.map(row => Object.fromEntries(row.map((value, i) => [table.columns[i], value]))) : [];
}

function number(value, digits = 4) {
  if (typeof value !== "number" || !isFinite(value)) return value === "" || value === undefined ? "" : String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3 ? value.toExponential(digits - 1) : String(+value.toPrecision(digits));
}

function size(bytes) {
  const units = ["", "Ki", "Mi", "Gi"];
  let i = 0;
  while (bytes >= 1024 && i < 3) { bytes /= 1024; i++; }
  return `${+bytes.toPrecision(4)} ${units[i]}B`;
}

// The leading number of a text such as "125 MHz"; NaN: there is none.
function leading(value) {
  return typeof value === "number" ? value : parseFloat(value);
}

// {value, links, drawing} of the point of a sweep with whose value the name of a series ends.
function valueOf(result, series) {
  const values = list(result.values).filter(value => series.endsWith(`, ${value.value}`));
  return values.sort((a, b) => b.value.length - a.value.length)[0];
}

function mark(error) {
  return typeof error !== "number" ? "" : Math.abs(error) <= results.ok_percent ? "ok" : Math.abs(error) <= results.near_percent ? "near" : "off";
}

const tip = document.getElementById("tip");
function tipShow(event, text) {
  tip.textContent = text;
  tip.hidden = false;
  const left = Math.min(event.pageX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8);
  tip.style.left = `${left}px`;
  tip.style.top = `${event.pageY + 14}px`;
}
function tipHide() { tip.hidden = true; }
