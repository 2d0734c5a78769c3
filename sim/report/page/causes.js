// Causes of the records of a timeline: what a record follows from, back to the call or store of a program, and what
// follows from it. A record: {lane, begin, end, text, cause: record or null, effects: [record], starts: boolean}.

// Picoseconds as exact nanoseconds: 284871222876 is "284,871,222.876 ns".
function nsText(ps) {
  const whole = Math.floor(ps / 1000), rest = Math.round(ps - whole * 1000);
  return `${whole.toLocaleString("en")}${rest ? `.${String(rest).padStart(3, "0")}` : ""} ns`;
}

function timesText(record) {
  return record.end > record.begin ? `${nsText(record.begin)} to ${nsText(record.end)}, for ${nsText(record.end - record.begin)}` : `at ${nsText(record.begin)}`;
}

// What a tip says of a record, with the cause and the time since it.
function recordText(record) {
  const lines = [record.text, timesText(record)];
  if (record.cause) lines.push(`follows from ${record.cause.text}`, `  ${timesText(record.cause)}`);
  if (record.effects.length > 0) lines.push(`${record.effects.length} record${record.effects.length > 1 ? "s follow" : " follows"} from it`);
  return lines.join("\n");
}

function causeSet(record, cause) {
  record.cause = cause;
  cause.effects.push(record);
}

// An arrow leaves a record that is over at its end, otherwise where the other begins; it enters a record that began
// before, such as a wait, where the first begins.
function arrowTimes(cause, effect) {
  const leaves = Math.min(Math.max(effect.begin, cause.begin), cause.end);
  return [leaves, Math.max(leaves, effect.begin)];
}

// From the record back to what began it; a record that begins something itself goes back to the one before.
function chainBack(record) {
  const chain = [record];
  for (let at = record.cause; at && at !== record; at = at.cause) {
    chain.push(at);
    if (at.starts) break;
  }
  return chain.reverse();
}

// What follows, up to the next beginnings. The order is that of distance.
function chainForward(record) {
  const found = [record], seen = new Set(found);
  for (let i = 0; i < found.length; i++) {
    if (i > 0 && found[i].starts) continue;
    for (const effect of found[i].effects) {
      if (!seen.has(effect)) { seen.add(effect); found.push(effect); }
    }
  }
  return found;
}

// The chain back from a record as a table, in the order of time; a click on a row selects that record.
function chainNode(record, select) {
  const chain = chainBack(record), forward = chainForward(record).length - 1;
  const rows = chain.map((one, i) => ({text: one.text, begin: one.begin, after: i > 0 ? one.begin - chain[i - 1].begin : 0, took: one.end - one.begin, record: one}));
  const link = row => element("button", {class: "link", onclick: () => select(row.record, "record")}, row.text);
  const table = tableMake(rows, [{name: "begin", title: "Begin", number: true, cell: row => nsText(row.begin)}, {name: "after", title: "After the one before", number: true, cell: row => nsText(row.after)},
    {name: "took", title: "Duration", number: true, cell: row => row.took > 0 ? nsText(row.took) : ""}, {name: "text", title: "Record", cell: link}], {most: 500});
  return element("details", {open: true, class: "chain"}, element("summary", {}, `${rows.length} record${rows.length > 1 ? "s" : ""} from the beginning to the selected one, ${forward} after it`),
    element("div", {class: "tools"}, element("button", {onclick: () => select(record, "chain")}, "zoom to them")), element("div", {class: "scroll"}, table.node));
}
