// Tables that sort by a click on a head and show what a filter leaves. columns: {name, title, number, cell, sort}.
// options: most: rows shown at once; count: an element for their number; note(row): paragraphs that a click opens;
// line(row, tr): called for each row shown.

function tableMake(rows, columns, options = {}) {
  const body = element("tbody"), head = element("tr");
  const state = {by: null, down: false, keep: () => true};
  const key = (row, column) => column.sort ? column.sort(row) : row[column.name];
  function compare(a, b) {
    const x = key(a, state.by), y = key(b, state.by);
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", {numeric: true});
    return state.down ? -order : order;
  }
  function noteToggle(row, line) {
    if (line.nextSibling && line.nextSibling.className === "note") { line.nextSibling.remove(); return; }
    line.after(element("tr", {class: "note"}, element("td", {colspan: columns.length}, ...options.note(row).map(text => element("p", {}, text)))));
  }
  function draw() {
    const shown = rows.filter(state.keep);
    if (state.by) shown.sort(compare);
    body.replaceChildren(...shown.slice(0, options.most || Infinity).map(row => {
      const opens = options.note && options.note(row).length > 0;
      const line = element("tr", {class: opens ? "opens" : null, title: opens ? "why" : null});
      line.append(...columns.map(column => element("td", {class: (column.number ? "number " : "") + (column.mark ? column.mark(row) : "")},
        column.cell ? column.cell(row) : number(row[column.name]))));
      if (opens) line.addEventListener("click", () => noteToggle(row, line));
      if (options.line) options.line(row, line);
      return line;
    }));
    if (options.count) options.count.textContent = `${shown.length} of ${rows.length}`;
  }
  for (const column of columns) {
    head.append(element("th", {class: column.number ? "number" : null, scope: "col", onclick: event => {
      state.down = state.by === column ? !state.down : false;
      state.by = column;
      for (const other of head.children) other.removeAttribute("aria-sort");
      event.currentTarget.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      draw();
    }}, column.title));
  }
  draw();
  return {node: element("table", {}, element("thead", {}, head), body), filter(keep) { state.keep = keep; draw(); }};
}

// A filter by words, all of which a row must have in one of its values.
function wordsFilter(text) {
  const words = text.toLowerCase().split(/\s+/).filter(word => word);
  return row => { const all = Object.values(row).join("\n").toLowerCase(); return words.every(word => all.includes(word)); };
}

// --- the published rows of all results ------------------------------------------------------------------------------

function publishedRows() {
  return results.results.flatMap(result => objects(result.compare).map(row => ({...row, scenario: result.name})));
}

function publishedSection() {
  const rows = publishedRows(), count = element("span", {class: "count"});
  if (rows.length === 0) return null;
  const table = tableMake(rows, [
    {name: "id", title: "Row", cell: row => row.id},
    {name: "what", title: "What"},
    {name: "scenario", title: "Scenario"},
    {name: "simulated", title: "Simulated", number: true},
    {name: "published", title: "Published", number: true, cell: row => `${row.published} ${row.unit}`, sort: row => leading(String(row.published).replace(/^[<>=]+/, ""))},
    {name: "error_percent", title: "Error", number: true, mark: row => row.use === "disputed" ? "" : mark(row.error_percent),
     cell: row => typeof row.error_percent !== "number" ? "" : `${row.error_percent > 0 ? "+" : ""}${row.error_percent.toFixed(1)} %`,
     sort: row => typeof row.error_percent === "number" ? Math.abs(row.error_percent) : -1},
    ...(rows.some(row => typeof row.interval_low === "number") ? [{name: "interval_low", title: "5 to 95 %", number: true, mark: row => row.inside === "yes" ? "ok" : row.inside === "no" ? "off" : "",
      cell: row => typeof row.interval_low === "number" ? `${number(row.interval_low)} to ${number(row.interval_high)}` : ""}] : []),
    {name: "use", title: "Use"},
    {name: "doubt", title: "In doubt", cell: row => row.doubt || ""},
  ], {count, note: row => (results.notes || {})[row.id] || []});
  const words = element("input", {type: "search", placeholder: "filter: words of a row", id: "rows-filter", oninput: update});
  const use = element("select", {onchange: update, id: "rows-use"}, ...["any use", "calibrate", "predict", "disputed"].map(text => element("option", {}, text)));
  const far = element("input", {type: "checkbox", onchange: update, id: "rows-off"});
  function update() {
    const has = wordsFilter(words.value);
    table.filter(row => has(row) && (use.selectedIndex === 0 || row.use === use.value) && (!far.checked || row.use !== "disputed" && mark(row.error_percent) === "off"));
  }
  return element("section", {id: "published"}, element("h2", {}, "Published rows"),
    element("div", {class: "tools"}, words, use, element("label", {}, far, ` only beyond ${results.near_percent} %`), count), table.node);
}
