// Records of a topic: from an offset or a time, filtered, searched, live; produced, copied, sent again and exported.

import { download, lines, live, post, save } from "./api.js";
import { command, count, dialog, duration, failure, field, h, notice, panel, plural, show, time } from "./dom.js";

const LIVE_MAX = 500;

export async function records(place, { name, query, signal, session }) {
  const from = h("input", { value: query.get("from") ?? "-50", title: "an offset, -N for the last N, beginning, or a time such as 2026-01-31T12:00:00Z" });
  const partition = h("input", { type: "number", min: 0, value: query.get("partition") ?? "", placeholder: "all" });
  const max = h("input", { type: "number", min: 1, max: 10000, value: query.get("max") ?? "200" });
  const key = h("input", { value: query.get("key") ?? "" });
  const grep = h("input", { value: query.get("grep") ?? "", placeholder: "regular expression" });
  const header = h("input", { value: query.get("header") ?? "", placeholder: "NAME or NAME=VALUE" });
  const where = h("input", { class: "wide", value: query.get("where") ?? "", placeholder: 'value.price > 50 and "Oslo" in text', title: "a condition on key, value, text, headers, offset, timestamp and partition" });
  const committed = h("input", { type: "checkbox" });
  committed.checked = query.get("isolation") === "read_committed";
  const found = h("div", { "aria-live": "polite" });
  let current = new AbortController(); // of the read or of the live view that `found` shows
  let isLive = false;
  let seen = [];

  const parameters = () => ({
    arg: name, from: from.value, partition: partition.value, max: max.value, key: key.value, grep: grep.value, header: header.value, where: where.value,
    isolation: committed.checked ? "read_committed" : null, more: true,
  });
  const stop = () => {
    current.abort();
    current = new AbortController();
    isLive = false;
    follow.textContent = "Follow";
    search.textContent = "Search all";
    return current.signal;
  };
  signal.addEventListener("abort", stop);
  const read = async (event) => {
    event?.preventDefault();
    const wanted = stop();
    const kept = Object.entries(parameters()).filter(([id, value]) => value && id !== "arg" && id !== "more");
    history.replaceState(null, "", `#/topics/${encodeURIComponent(name)}?${new URLSearchParams([["tab", "records"], ...kept])}`);
    show(found, h("p", { class: "quiet" }, "reading …"));
    try {
      const answer = await lines("consume", parameters(), wanted);
      if (wanted.aborted) return;
      seen = answer.value;
      show(found, exports(() => seen, name, parameters(), session.mayWrite), list(seen, name, session), command(answer.command));
    } catch (error) {
      if (!wanted.aborted) show(found, failure(error));
    }
  };
  const follow = h("button", { type: "button", onclick: () => {
    const wasLive = isLive;
    const wanted = stop();
    if (wasLive) return;
    isLive = true;
    follow.textContent = "Stop";
    seen = [];
    const rows = h("tbody");
    const status = h("p", { class: "quiet" }, "waiting for new records …");
    show(found, exports(() => seen, name, parameters(), session.mayWrite), status, frame(rows));
    const { max: _, ...rest } = parameters();
    live("consume", { ...rest, from: "latest" }, wanted, (record) => {
      seen.unshift(record);
      rows.prepend(row(record, name, session));
      if (seen.length > LIVE_MAX) {
        seen.pop();
        rows.lastChild.remove();
      }
      status.textContent = `the last ${plural(seen.length, "record")}, newest first`;
    }, (error) => { stop(); show(status, failure(error)); }, { pauses: false });
  } }, "Follow");
  // Reads all records from the start on, and shows those that match while the search goes through the partition.
  const search = h("button", { type: "button", onclick: () => {
    const wasSearching = search.textContent === "Stop";
    const wanted = stop();
    if (wasSearching) return;
    search.textContent = "Stop";
    seen = [];
    const rows = h("tbody");
    const bar = h("progress", { max: 1, value: 0, "aria-label": "Progress of the search" });
    const status = h("p", { class: "quiet", role: "status" }, "searching …");
    show(found, exports(() => seen, name, parameters(), session.mayWrite), bar, status, frame(rows));
    const { max: _, ...rest } = parameters();
    live("consume/search", { ...rest, from: from.value.startsWith("-") ? "beginning" : from.value, max: max.value }, wanted, (item) => {
      if (!item.progress) {
        seen.push(item);
        rows.append(row(item, name, session));
        return;
      }
      const { read, total, elapsedMs } = item.progress;
      bar.value = total ? read / total : 1;
      const isDone = read >= total || seen.length >= Number(max.value);
      status.textContent = `${plural(seen.length, "record")} found in ${count(read)} of ${count(total)} offsets, ${duration(elapsedMs / 1000)}${isDone ? ", done" : ""}`;
      if (isDone) search.textContent = "Search all";
    }, (error) => { stop(); show(status, failure(error)); }, { pauses: false });
  } }, "Search all");
  show(place, h("form", { class: "row panel", onsubmit: read },
    field("From", from), field("Partition", partition), field("At most", max), field("Key", key), field("Text", grep), field("Header", header), field("Condition", where),
    h("label", { class: "check" }, committed, "committed only"), h("button", { class: "main" }, "Read"), search, follow,
    session.mayWrite ? h("button", { type: "button", onclick: () => produce(name) }, "Produce") : null), found);
  await read();
}

const frame = (rows) => h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Records" }, h("table", null,
  h("thead", null, h("tr", null, h("th", { scope: "col" }, h("input", { type: "checkbox", "aria-label": "Select all", onchange: (event) => {
    for (const one of rows.querySelectorAll("input[type=checkbox]")) one.checked = event.target.checked;
  } })), ["Partition", "Offset", "Time (UTC)", "Key", "Value", "Headers"].map((head, at) => h("th", { scope: "col", class: at < 2 ? "number" : null }, head)))), rows));

const list = (all, name, session) => panel(plural(all.length, "record"), all.length ? frame(h("tbody", null, all.map((one) => row(one, name, session)))) : h("p", { class: "quiet" }, "no record matches"));

function row(record, name, session) {
  const open = () => details(record, name, session);
  const chosen = h("input", { type: "checkbox", "aria-label": `Select the record at offset ${record.offset}` });
  chosens.set(record, chosen);
  return h("tr", null, h("td", null, chosen), h("td", { class: "number" }, record.partition),
    h("td", { class: "number" }, h("button", { type: "button", class: "small", onclick: open, "aria-label": `Record at offset ${record.offset}` }, count(record.offset))),
    h("td", { class: "mono" }, time(record.timestamp)), h("td", { class: "mono" }, brief(record.key, record.keyEncoding)), h("td", { class: "mono" }, shownValue(record)),
    h("td", { class: "mono" }, record.headers.map((one) => h("div", null, brief(header(one))))));
}

const chosens = new WeakMap(); // record → its checkbox
const shownValue = (record) => (record.valueDecoded === undefined ? brief(record.value, record.valueEncoding)
  : [h("span", { class: "badge" }, `schema ${record.valueSchema}`), brief(JSON.stringify(record.valueDecoded))]);

// Bytes that are not UTF-8 come as base64, and `valueEncoding` or `keyEncoding` says so.
const header = (one) => `${one.key}=${one.valueEncoding ? `${one.valueEncoding}:` : ""}${one.value ?? "null"}`;
const brief = (value, encoding) => (value === null ? h("span", { class: "quiet" }, "null")
  : [encoding ? h("span", { class: "badge" }, encoding) : null, value.length > 300 ? `${value.slice(0, 300)} …` : value]);

function pretty(value) {
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}

function hex(value, encoding) {
  const data = encoding === "base64" ? Uint8Array.from(atob(value), (one) => one.charCodeAt(0)) : new TextEncoder().encode(value);
  const rows = [];
  for (let at = 0; at < Math.min(data.length, 4096); at += 16) {
    const part = [...data.slice(at, at + 16)];
    rows.push(`${at.toString(16).padStart(6, "0")}  ${part.map((one) => one.toString(16).padStart(2, "0")).join(" ").padEnd(48)}${part.map((one) => (one > 31 && one < 127 ? String.fromCharCode(one) : ".")).join("")}`);
  }
  return rows.join("\n") + (data.length > 4096 ? `\n… ${count(data.length)} bytes` : "");
}

// A title with a key, a value or a header, which a button shows as hex.
function bytesOf(title, value, encoding) {
  if (value === null) return [h("h3", null, title), h("pre", { tabindex: "0" }, "null")];
  const shown = h("pre", { tabindex: "0" }, pretty(value));
  let isHex = false;
  const change = h("button", { type: "button", class: "small", "aria-label": `${title} as hex`, "aria-pressed": "false", onclick: () => {
    isHex = !isHex;
    shown.textContent = isHex ? hex(value, encoding) : pretty(value);
    change.textContent = isHex ? "as text" : "as hex";
    change.setAttribute("aria-pressed", String(isHex));
  } }, "as hex");
  return [h("h3", null, title, " ", encoding ? h("span", { class: "badge" }, encoding) : null, " ", change), shown];
}

function details(record, name, session) {
  const other = Object.entries(record).filter(([id]) => !["value", "key", "headers", "topic", "valueDecoded", "keyDecoded"].includes(id));
  const shown = dialog(`${name}-${record.partition} at offset ${count(record.offset)}`,
    h("p", { class: "mono" }, other.map(([id, one]) => `${id} ${id === "timestamp" ? time(one) : one}`).join("  ·  ")),
    bytesOf("Key", record.key, record.keyEncoding),
    record.valueDecoded === undefined ? null : [h("h3", null, `Decoded with schema ${record.valueSchema}`), h("pre", { tabindex: "0" }, JSON.stringify(record.valueDecoded, null, 2))],
    bytesOf("Value", record.value, record.valueEncoding),
    record.headers.map((one) => bytesOf(`Header ${one.key}`, one.value, one.valueEncoding)),
    h("p", null, h("button", { type: "button", class: "main", onclick: () => shown.close() }, "Close"), " ",
      session.mayWrite ? h("button", { type: "button", onclick: () => { shown.close(); produce(name, record); } }, "Produce a copy") : null, " ",
      session.hasData ? h("a", { href: `#/log/${encodeURIComponent(name)}/${record.partition}?offset=${record.offset}`, onclick: () => shown.close() }, "How a read finds it") : null));
}

const line = (record) => {
  const { key = null, value = null, headers = [], keyEncoding, valueEncoding } = record;
  return JSON.stringify({ key, value, headers, keyEncoding, valueEncoding });
};

// The kinds of a key, a value or a header: a text, bytes as base64, or nothing.
const KINDS = [["", "text"], ["base64", "base64"], ["null", "null"]];

// A control for bytes with its kind. `read` returns the value and its encoding as `tailrace produce --json` takes them.
function bytesField(name, control, value, encoding) {
  const kind = h("select", { "aria-label": `Kind of ${name}` }, KINDS.map(([id, text]) => h("option", { value: id }, text)));
  const turn = () => { control.disabled = kind.value === "null"; };
  kind.value = value === null ? "null" : encoding ?? "";
  kind.addEventListener("change", turn);
  control.value = value ?? "";
  turn();
  return { kind, control, read: () => (kind.value === "null" ? [null, undefined] : [control.value, kind.value || undefined]) };
}

function headerRow({ key = "", value = "", valueEncoding } = {}) {
  const name = h("input", { value: key, "aria-label": "Name of the header", placeholder: "name" });
  const content = bytesField("the header", h("input", { "aria-label": "Value of the header", placeholder: "value" }), value, valueEncoding);
  const row = h("div", { class: "row" }, name, content.control, content.kind,
    h("button", { type: "button", class: "small", "aria-label": "Remove the header", onclick: () => row.remove() }, "remove"));
  headersOf.set(row, () => {
    const [text, encoding] = content.read();
    return { key: name.value, value: text, valueEncoding: encoding };
  });
  return row;
}

const headersOf = new WeakMap(); // row → a function that returns its header

function produce(name, template = {}) {
  const key = bytesField("the key", h("input", { "aria-label": "Key" }), template.key ?? null, template.keyEncoding);
  const value = bytesField("the value", h("textarea", { rows: 8, "aria-label": "Value" }), template.value === undefined ? "" : template.value, template.valueEncoding);
  const headers = h("div", null, (template.headers ?? []).map(headerRow));
  const partition = h("input", { type: "number", min: 0, placeholder: "by key" });
  const result = h("div", { "aria-live": "polite" });
  const send = async (event) => {
    event.preventDefault();
    const [keyText, keyEncoding] = key.read();
    const [valueText, valueEncoding] = value.read();
    const record = { key: keyText, keyEncoding, value: valueText, valueEncoding, headers: [...headers.children].map((row) => headersOf.get(row)()) };
    try {
      const { value: answer, command: text } = await post("produce", { arg: name, partition: partition.value }, `${line(record)}\n`);
      show(result, h("p", { class: "good" }, `written: ${JSON.stringify(answer)}`), command(text));
    } catch (error) {
      show(result, failure(error));
    }
  };
  const shown = dialog(`Produce to ${name}`, h("form", { onsubmit: send },
    h("p", { class: "quiet" }, "A value that is null deletes the key in a compacted topic."),
    h("h3", null, "Key"), h("div", { class: "row" }, key.control, key.kind), h("h3", null, "Value"), value.control, h("div", { class: "row" }, value.kind),
    h("h3", null, "Headers"), headers, h("p", null, h("button", { type: "button", class: "small", onclick: () => headers.append(headerRow()) }, "Add a header")),
    field("Partition", partition), result,
    h("p", null, h("button", { class: "main" }, "Produce"), " ", h("button", { type: "button", onclick: () => shown.close() }, "Close"))));
}

const BODY_MAX = 900_000;

// Sends records again, in requests that the console accepts.
function resend(records, name) {
  const target = h("input", { required: true, value: name });
  const result = h("div", { "aria-live": "polite" });
  const send = async (event) => {
    event.preventDefault();
    try {
      let text = "";
      let body = "";
      for (const [at, record] of records.entries()) {
        body += `${line(record)}\n`;
        if (body.length < BODY_MAX && at + 1 < records.length) continue;
        text = (await post("produce", { arg: target.value, repartition: true }, body)).command;
        body = "";
      }
      shown.close();
      notice(`${plural(records.length, "record")} written to ${target.value}.`, text);
    } catch (error) {
      show(result, failure(error));
    }
  };
  const shown = dialog(`Send ${plural(records.length, "record")} again`, h("form", { onsubmit: send }, field("To the topic", target), result,
    h("p", null, h("button", { class: "main" }, "Send"), " ", h("button", { type: "button", onclick: () => shown.close() }, "Cancel"))));
}

// Exports what is shown.
function exports(seen, name, parameters, mayWrite) {
  const write = (text, kind, ending) => download(new Blob([text], { type: kind }), `${name}.${ending}`);
  const cell = (value) => {
    const text = value ?? "";
    // A cell that a spreadsheet would take for a formula is made a text.
    return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  };
  const csv = () => ["partition,offset,timestamp,key,value,headers", ...seen().map((one) => [one.partition, one.offset, one.timestamp, cell(one.key), cell(one.value), cell(one.headers.map(header).join("; "))].join(","))].join("\r\n");
  const { more: _, ...read } = parameters;
  const chosen = () => seen().filter((one) => chosens.get(one)?.checked);
  const note = h("span", { class: "quiet", role: "status" });
  const button = (text, onclick) => [h("button", { type: "button", class: "small", onclick }, text), " "];
  return h("p", { class: "actions" }, button("save as JSON", () => write(JSON.stringify(seen(), null, 1), "application/json", "json")),
    button("save as CSV", () => write(csv(), "text/csv", "csv")), button("save as Parquet", () => {
      show(note, "reading …");
      save("consume/parquet", read, `${name}.parquet`).then(() => show(note), (error) => show(note, failure(error)));
    }),
    mayWrite ? button("send the selected again", () => (chosen().length ? resend(chosen(), name) : show(note, "select records first"))) : null, note);
}
