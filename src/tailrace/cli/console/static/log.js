// The log, drawn: a partition's segments to scale, the batches of one of them, and the steps of a read.

import { get, lines } from "./api.js";
import { bytes, command, count, facts, failure, field, h, link, panel, plural, show, svg, table, time } from "./dom.js";

const WIDTH = 1200;
const BATCHES_MAX = 2000;

export async function logPage(stage, { names: [topic, partition], query, signal, session }) {
  if (!session.hasData) {
    return show(stage, h("h1", null, "Log"), h("p", { class: "panel" }, "This console sees no data directory. Start it beside a broker with ",
      h("code", null, "tailrace serve --console"), ", or with ", h("code", null, "tailrace console --data DIR"), "."));
  }
  if (!topic) return choose(stage, signal);
  const number = Number(partition ?? 0);
  const { value, command: text } = await get("log/ls", { topic, partition: number, segments: true }, signal);
  const [log] = value.partitions;
  const batches = h("div");
  const explanation = h("div", { "aria-live": "polite" });
  show(stage, h("h1", null, `${topic}-${number}`), h("p", null, link(`#/topics/${encodeURIComponent(topic)}`, "the topic"), "  ·  ", others(topic, number)),
    facts([
      ["Size", bytes(log.size), plural(log.segments.length, "segment")],
      ["Log start", count(log.logStartOffset)], ["High watermark", count(log.highWatermark), "of the last checkpoint"], ["Log end", count(log.logEndOffset)],
      ["Flushed to disk", count(log.recoveryPoint), "recovery point"],
      ["Records from", h("span", { class: "mono" }, time(log.firstTimestamp).slice(0, 19)), `to ${time(log.largestTimestamp).slice(0, 19)}`],
      log.cleanedTo === null ? null : ["Cleaned to", count(log.cleanedTo), "compaction"],
    ]),
    panel("Segments", h("p", { class: "quiet" }, "To scale by size. Choose one to see its batches."),
      segments(log, (one) => drawBatches(batches, { topic, number, one, log, signal })), segmentTable(log), command(text)),
    batches, epochs(log), explainForm(explanation, { topic, number, query, signal, log }), explanation);
}

async function choose(stage, signal) {
  const { value } = await get("topics/list", { internal: true }, signal);
  show(stage, h("h1", null, "Log"), h("p", { class: "quiet" }, "Choose a topic to see the files of its partitions."), table([
    { head: "Topic", cell: (one) => link(`#/log/${encodeURIComponent(one.name)}/0`, one.name), sort: (one) => one.name },
    { head: "Partitions", number: true, cell: (one) => count(one.partitionCount), sort: (one) => one.partitionCount },
  ], value.topics, { caption: "Topics" }));
}

function others(topic, number) {
  const input = h("input", { type: "number", min: 0, value: number, "aria-label": "Partition" });
  input.addEventListener("change", () => { location.hash = `#/log/${encodeURIComponent(topic)}/${input.value}`; });
  return ["partition ", input];
}

const button = (element, label, act) => {
  element.setAttribute("tabindex", "0");
  element.setAttribute("role", "button");
  element.setAttribute("aria-label", label);
  element.append(svg("title", null, label));
  element.addEventListener("click", act);
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      act();
    }
  });
  return element;
};

function segments(log, act) {
  const total = Math.max(log.size, 1);
  const least = 6;
  const scale = (WIDTH - least * log.segments.length) / total;
  let x = 0;
  const drawn = log.segments.map((one, at) => {
    const width = least + Math.max(one.size * scale, 0);
    const isActive = at === log.segments.length - 1;
    const label = `segment ${one.baseOffset}: offsets ${count(one.baseOffset)} to ${count(one.endOffset)}, ${bytes(one.size)}, ${plural(one.offsetIndexEntries, "index entry", "index entries")}${isActive ? ", active" : ""}`;
    const group = svg("g", null,
      button(svg("rect", { class: isActive ? "segment active" : "segment", x: x + 1, y: 22, width: Math.max(width - 2, 1), height: 46, rx: 3 }), label, () => act(one)),
      ticks(x, width, one),
      width > 90 ? svg("text", { x: x + 6, y: 14 }, count(one.baseOffset)) : null,
      one.abortedTransactions ? svg("circle", { class: "probe", cx: x + width / 2, cy: 78, r: 4 }) : null);
    x += width;
    return group;
  });
  return h("div", { class: "scroll" }, svg("svg", { viewBox: `0 0 ${WIDTH} 100`, width: "100%", role: "group", "aria-label": "Segments" }, drawn,
    svg("text", { x: 0, y: 96 }, `${count(log.logStartOffset)}`), svg("text", { x: WIDTH, y: 96, "text-anchor": "end" }, `log end ${count(log.logEndOffset)}`)));
}

// Index entries are spread over a segment at about equal distances in bytes.
function ticks(x, width, one) {
  const shown = Math.min(one.offsetIndexEntries, Math.floor(width / 3));
  return Array.from({ length: shown }, (_, at) => {
    const place = x + ((at + 1) * width) / (shown + 1);
    return svg("line", { class: "axis", x1: place, x2: place, y1: 60, y2: 68 });
  });
}

const segmentTable = (log) => h("details", null, h("summary", null, "as a table"), table([
  { head: "Base offset", number: true, cell: (one) => count(one.baseOffset), sort: (one) => one.baseOffset },
  { head: "End offset", number: true, cell: (one) => count(one.endOffset) },
  { head: "Size", number: true, cell: (one) => bytes(one.size), sort: (one) => one.size },
  { head: "Index entries", number: true, cell: (one) => count(one.offsetIndexEntries) },
  { head: "Time index", number: true, cell: (one) => count(one.timeIndexEntries) },
  { head: "Aborted transactions", number: true, cell: (one) => count(one.abortedTransactions) },
  { head: "Producer snapshot", cell: (one) => (one.hasSnapshot ? "yes" : "–") },
  { head: "Largest timestamp", cell: (one) => h("span", { class: "mono" }, time(one.largestTimestamp)) },
], log.segments, { caption: "Segments" }));

const epochs = (log) => (log.leaderEpochs.length ? panel("Leader epochs", table([
  { head: "Epoch", number: true, cell: (one) => count(one.epoch ?? one[0]) }, { head: "First offset", number: true, cell: (one) => count(one.startOffset ?? one[1]) },
], log.leaderEpochs, { caption: "Leader epochs" })) : null);

const SHOWN_BYTES = 4 * 1024 * 1024;

async function drawBatches(place, { topic, number, one, log, signal }) {
  show(place, h("p", { class: "quiet" }, "reading batch headers …"));
  try {
    const { value, command: text } = await lines("log/dump", { topic, partition: number, only: "log", "max-bytes": SHOWN_BYTES }, signal);
    const file = `${String(one.baseOffset).padStart(20, "0")}.log`;
    const found = value.filter((entry) => entry.kind === "batch" && entry.file.endsWith(file)).slice(0, BATCHES_MAX);
    const last = found.at(-1);
    const read = last ? last.position + last.size : 1;
    const chosen = h("div", { "aria-live": "polite" });
    const drawn = found.map((batch) => button(svg("rect", {
      class: ["batch", batch.isControl && "marker", batch.isTransactional && "transactional", !batch.isvalid && "invalid"].filter(Boolean).join(" "),
      x: (batch.position / read) * WIDTH, width: Math.max((batch.size / read) * WIDTH - 0.5, 0.7), y: 6, height: 34,
    }), `batch at byte ${batch.position}: offsets ${batch.baseOffset} to ${batch.lastOffset}, ${bytes(batch.size)}`, () => show(chosen, batchFacts(batch, topic, number))));
    show(place, panel(`Batches of segment ${count(one.baseOffset)}`,
      h("p", { class: "quiet" }, `${plural(found.length, "batch", "batches")}${read < one.size ? ` in the first ${bytes(read)} of ${bytes(one.size)}` : ""}. Choose one to see its header. `,
        log.segments.at(-1) === one ? "This is the active segment." : ""),
      h("div", { class: "scroll" }, svg("svg", { viewBox: `0 0 ${WIDTH} 46`, width: "100%", role: "group", "aria-label": "Batches" }, drawn)), chosen, command(text)));
  } catch (error) {
    if (!signal.aborted) show(place, failure(error));
  }
}

const batchFacts = (batch, topic, number) => [facts([
  ["Offsets", `${count(batch.baseOffset)} – ${count(batch.lastOffset)}`, plural(batch.count, "record")],
  ["Bytes", count(batch.size), `from ${count(batch.position)} on`],
  ["Codec", batch.compresscodec, `magic ${batch.magic}`],
  ["Producer", batch.producerId < 0 ? "–" : count(batch.producerId), batch.producerId < 0 ? null : `epoch ${batch.producerEpoch}, sequence ${batch.baseSequence}`],
  ["Leader epoch", count(batch.partitionLeaderEpoch)],
  ["Checksum", h("span", { class: "mono" }, batch.crc.toString(16).padStart(8, "0")), batch.isvalid ? "valid" : "wrong"],
  ["Transaction", batch.isControl ? "marker" : batch.isTransactional ? "yes" : "no"],
  ["Time", h("span", { class: "mono" }, time(batch.CreateTime ?? batch.LogAppendTime).slice(0, 19))],
]), h("p", null, link(`#/topics/${encodeURIComponent(topic)}?tab=records&partition=${number}&from=${batch.baseOffset}&max=${Math.min(batch.count, 500)}`, "Its records"))];

// The steps of a read

function explainForm(place, { topic, number, query, signal, log }) {
  const offset = h("input", { inputmode: "numeric", value: query.get("offset") ?? "", placeholder: `${log.logStartOffset} to ${log.logEndOffset}` });
  const timestamp = h("input", { value: query.get("timestamp") ?? "", placeholder: "milliseconds, or 2026-01-31T12:00:00Z" });
  const committed = h("input", { type: "checkbox" });
  const explain = async (event) => {
    event?.preventDefault();
    show(place, h("p", { class: "quiet" }, "reading …"));
    try {
      const { value, command: text } = await get("log/explain", {
        topic, partition: number, offset: timestamp.value ? null : offset.value || String(log.logStartOffset), timestamp: timestamp.value,
        isolation: committed.checked ? "read_committed" : null,
      }, signal);
      show(place, value.lookup ? lookup(value.lookup) : null, value.read ? reading(value.read) : null, command(text));
    } catch (error) {
      if (!signal.aborted) show(place, failure(error));
    }
  };
  if (query.has("offset") || query.has("timestamp")) explain();
  return panel("How a read finds its bytes", h("form", { class: "row", onsubmit: explain },
    field("Offset", offset), field("or time", timestamp), h("label", { class: "check" }, committed, "committed only"), h("button", { class: "main" }, "Explain")));
}

const file = (path) => h("code", null, path.split("/").at(-1));
const step = (title, ...content) => h("li", null, h("strong", null, title), content.map((one) => h("div", null, one)));

function search(found, key) {
  return [`${plural(found.entries, "entry", "entries")} in `, file(found.path), `, ${plural(found.probes.length, "probe")} by binary search`,
    found.probes.length ? probes(found, key) : null];
}

function probes(found, key) {
  const place = (slot) => 10 + (slot / Math.max(found.entries - 1, 1)) * (WIDTH - 20);
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${26 + found.probes.length * 18}`, width: "100%", role: "img", "aria-label": `probes of the binary search for ${key}` },
    svg("line", { class: "axis", x1: 10, x2: WIDTH - 10, y1: 10, y2: 10 }),
    found.probes.map((probe, at) => [
      svg("line", { class: "axis", x1: place(probe.slot), x2: place(probe.slot), y1: 10, y2: 24 + at * 18 }),
      svg("circle", { class: "probe", cx: place(probe.slot), cy: 10, r: 5 }),
      svg("text", { x: Math.min(place(probe.slot) + 6, WIDTH - 330), y: 32 + at * 18 }, `${at + 1}: slot ${probe.slot}, ${key} ${probe.key}`),
    ]));
}

const walked = (walk) => [plural(walk.walked.length, "batch header", "batch headers"), ` from byte ${count(walk.walkStart)} on`, table([
  { head: "Byte", number: true, cell: (one) => count(one.position) },
  { head: "Offsets", cell: (one) => `${count(one.baseOffset)} – ${count(one.lastOffset)}` },
  { head: "Bytes", number: true, cell: (one) => count(one.size) },
  { head: "Result", cell: (one) => (one.isMatch ? h("strong", { class: "good" }, "found") : "ends before it") },
], walk.walked, { caption: "Batch headers" })];

function reading(read) {
  const { bounds, cost, slice } = read;
  return panel(`Read from offset ${count(read.offset)}`, h("ol", { class: "steps" },
    step("Bounds", `log start ${count(bounds.logStartOffset)} ≤ last stable offset ${count(bounds.lastStableOffset)} ≤ high watermark ${count(bounds.highWatermark)} ≤ log end ${count(bounds.logEndOffset)}`,
      `${bounds.isolation} ends before offset ${count(bounds.bound)}`),
    read.emptyBecause ? step("Nothing is read", h("span", { class: "bad" }, read.emptyBecause)) : null,
    read.walks.map((walk) => [
      step("Segment", [`base offset ${count(walk.baseOffset)}: slot ${walk.slot + 1} of ${walk.segments}, `, file(walk.path), `, ${bytes(walk.size)}`]),
      step("Offset index", search(walk.search, "offset")), step("Walk", walked(walk)),
    ]),
    slice ? step("Slice", [file(slice.path), ` from byte ${count(slice.position)}, ${bytes(slice.size)}`], picture(read)) : null,
    cost ? step("Cost", `${plural(cost.indexProbes, "index probe")} on ${plural(cost.indexPages, "page")}; ${plural(cost.reads, "read")} of the log, ${count(cost.bytesRead)} bytes on ${plural(cost.logPages, "page")}; the slice spans ${plural(cost.slicePages, "page")} and is sent without a copy`) : null));
}

// The segment of the slice: where the walk went, and what is sent.
function picture({ slice, walks }) {
  const walk = walks.at(-1);
  if (!walk || !walk.size) return null;
  const place = (position) => (position / walk.size) * WIDTH;
  return svg("svg", { viewBox: `0 0 ${WIDTH} 30`, width: "100%", role: "img", "aria-label": "the slice in its segment" },
    svg("rect", { class: "segment", x: 1, y: 4, width: WIDTH - 2, height: 22, rx: 3 }),
    walk.walked.map((one) => svg("rect", { class: "walk", x: place(one.position), y: 4, width: Math.max(place(one.size), 2), height: 22 })),
    svg("rect", { class: "slice", x: place(slice.position), y: 9, width: Math.max(place(slice.size), 2), height: 12 }));
}

function lookup(found) {
  return panel(`First record at or after ${time(found.timestamp)}`, h("ol", { class: "steps" },
    step("Segment", `${plural(found.segments.length, "segment")} looked at, until one's largest timestamp reaches it`),
    found.timeSearch ? step("Time index", search(found.timeSearch, "timestamp")) : null,
    found.walk ? step("Walk", walked(found.walk)) : null,
    step("Result", found.found ? `offset ${count(found.found.offset)}, at ${time(found.found.timestamp)}` : "no record is that late")));
}
