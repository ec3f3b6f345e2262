// The log of a partition: its segments to scale, what lies in them, what is read now and what is removed next.

import { get, lines, repeat } from "./api.js";
import { bytes, command, count, facts, failure, field, h, link, panel, plural, show, svg, table, time } from "./dom.js";
import { explainForm } from "./explain.js";
import { drawMap } from "./map.js";

const WIDTH = 1200;
const WINDOW_BYTES = 1024 * 1024;
const BATCHES_MAX = 2000;
const GROUPS_MAX = 20;
// The configs that decide what retention and compaction take; those of the running broker may differ from its files.
const UPKEEP = ["cleanup.policy", "retention.ms", "retention.bytes", "min.compaction.lag.ms", "max.compaction.lag.ms", "min.cleanable.dirty.ratio", "delete.retention.ms"];

export async function logPage(stage, context) {
  const { names: [topic, partition], query, signal, session } = context;
  if (!session.hasData) {
    return show(stage, h("h1", null, "Log"), h("p", { class: "panel" }, "This console sees no data directory. Start it beside a broker with ",
      h("code", null, "tailrace serve --console"), ", or with ", h("code", null, "tailrace console --data DIR"), "."));
  }
  if (!topic) return choose(stage, signal);
  const number = Number(partition ?? 0);
  const { value: described } = await get("configs/describe", { topic, all: true }, signal);
  const config = described.configs.filter((one) => UPKEEP.includes(one.name) && one.value !== null).map((one) => `${one.name}=${one.value}`);
  const { value: log, command: text } = await get("log/map", { topic, partition: number, config }, signal);
  const batches = h("div");
  const explanation = h("div", { "aria-live": "polite" });
  const readers = h("div");
  const drawn = h("div", { class: "scroll" });
  const open = (segment, byte) => drawBatches(batches, { topic, number, segment, byte, signal });
  const draw = (marks) => show(drawn, drawMap(log, marks, open));
  draw([]);
  show(stage, h("h1", null, `${topic}-${number}`), h("p", null, link(`#/topics/${encodeURIComponent(topic)}`, "the topic"), "  ·  ", others(topic, number)),
    facts([
      ["Size", bytes(log.size), plural(log.segments.length, "segment")],
      ["Log start", count(log.logStartOffset)], ["Last stable", count(log.lastStableOffset), log.openTransactions.length ? plural(log.openTransactions.length, "open transaction") : "no open transaction"],
      ["High watermark", count(log.highWatermark), "of the last checkpoint"], ["Log end", count(log.logEndOffset)],
      ["Flushed to disk", count(log.recoveryPoint), "recovery point"],
    ]),
    panel("Segments", h("p", { class: "quiet" }, "To scale by size. Click a byte of a segment to see the batch there."), drawn, legend(log),
      byteForm(log, open, query), segmentTable(log), command(text)),
    batches, upkeep(log), readers, transactions(log), epochs(log), explainForm(explanation, { topic, number, query, signal, log }), explanation);
  if (query.has("segment")) open(log.segments.find((one) => String(one.baseOffset) === query.get("segment")) ?? log.segments[0], Number(query.get("byte") ?? 0));
  if (log.findings.length) stage.append(panel("Findings", h("ul", null, log.findings.map((one) => h("li", null, `${one.message} (${one.file})`)))));
  const refused = (error) => show(readers, panel("Read now", failure(error)));
  await repeat(5000, signal, () => drawReaders(readers, { topic, number, log, signal, session }).then(draw).catch((error) => { if (!signal.aborted) refused(error); }), refused);
}

async function choose(stage, signal) {
  const { value, command: text } = await get("topics/list", { internal: true }, signal);
  show(stage, h("h1", null, "Log"), h("p", { class: "quiet" }, "Choose a topic to see the files of its partitions."), table([
    { head: "Topic", cell: (one) => link(`#/log/${encodeURIComponent(one.name)}/0`, one.name), sort: (one) => one.name },
    { head: "Partitions", number: true, cell: (one) => count(one.partitionCount), sort: (one) => one.partitionCount },
  ], value.topics, { caption: "Topics" }), command(text));
}

function others(topic, number) {
  const input = h("input", { type: "number", min: 0, value: number, "aria-label": "Partition" });
  input.addEventListener("change", () => { location.hash = `#/log/${encodeURIComponent(topic)}/${input.value}`; });
  return ["partition ", input];
}

const KEY = [["density", "index entries"], ["going", "deleted by the next run of retention"], ["dirty", "compaction cleans it next"], ["epoch", "leader epoch"],
  ["snapshot", "producer snapshot"], ["open", "open transaction"], ["aborted", "aborted transaction"], ["reader", "position of a group"]];

const legend = (log) => h("ul", { class: "legend" }, KEY.filter(([id]) => isShown(log, id)).map(([id, text]) => h("li", null,
  svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, svg("rect", { class: `key ${id}`, width: 14, height: 14, rx: 3 })), text)));

function isShown(log, id) {
  if (id === "going") return log.segments.some((one) => one.deletion);
  if (id === "dirty") return log.compaction?.cleanableBytes > 0;
  if (id === "open") return log.openTransactions.length > 0;
  if (id === "aborted") return log.abortedTransactions.length > 0;
  if (id === "snapshot") return log.segments.some((one) => one.hasSnapshot);
  return true;
}

function byteForm(log, open, query) {
  const segment = h("select", null, log.segments.map((one) => h("option", { value: one.baseOffset }, one.baseOffset)));
  if (query.has("segment")) segment.value = query.get("segment");
  const byte = h("input", { type: "number", min: 0, value: query.get("byte") ?? 0 });
  return h("form", { class: "row", onsubmit: (event) => {
    event.preventDefault();
    open(log.segments.find((one) => String(one.baseOffset) === segment.value), Number(byte.value));
  } }, field("Segment", segment), field("Byte", byte), h("button", null, "Show the batch"));
}

const segmentTable = (log) => h("details", null, h("summary", null, "as a table"), table([
  { head: "Base offset", number: true, cell: (one) => count(one.baseOffset), sort: (one) => one.baseOffset },
  { head: "End offset", number: true, cell: (one) => count(one.endOffset) },
  { head: "Size", number: true, cell: (one) => bytes(one.size), sort: (one) => one.size },
  { head: "Index entries", number: true, cell: (one) => count(one.indexEntries) },
  { head: "Time index", number: true, cell: (one) => count(one.timeIndexEntries) },
  { head: "Aborted transactions", number: true, cell: (one) => count(one.abortedTransactions) },
  { head: "Producer snapshot", cell: (one) => (one.hasSnapshot ? "yes" : "–") },
  { head: "Largest timestamp", cell: (one) => h("span", { class: "mono" }, time(one.largestTimestamp)) },
  { head: "Next", cell: next },
], log.segments, { caption: "Segments" }));

const next = (one) => one.deletion ?? (one.deletableFrom === null ? "–" : `deleted after ${time(one.deletableFrom).slice(0, 19)}`);

function upkeep(log) {
  const going = log.segments.filter((one) => one.deletion);
  const dates = log.segments.map((one) => one.deletableFrom).filter((one) => one !== null);
  const { compaction } = log;
  return panel("What is removed next", facts([
    ["Cleanup", log.cleanupPolicy.join(", ") || "none"],
    ["Deleted next", going.length ? bytes(going.reduce((sum, one) => sum + one.size, 0)) : "nothing", going.length ? `${plural(going.length, "segment")}: ${going[0].deletion}` : "by the next run of retention"],
    dates.length && !going.length ? ["First deletion", h("span", { class: "mono" }, time(Math.min(...dates)).slice(0, 19)), "by retention.ms"] : null,
    compaction ? ["To clean", bytes(compaction.cleanableBytes), `offsets ${count(compaction.firstDirtyOffset)} to ${count(compaction.firstUncleanableOffset)}`] : null,
    compaction ? ["Dirty ratio", compaction.cleanableRatio.toFixed(2), `${compaction.isDue ? "compaction is due" : "compaction waits"}; due above ${compaction.minCleanableRatio}`] : null,
  ]));
}

// Draws who reads the partition now, and returns the marks of the groups for the map.
async function drawReaders(place, { topic, number, log, signal, session }) {
  const { value: lags, command: text } = await get("groups/lag", {}, signal);
  const names = lags.lags.filter((one) => one.topic === topic).map((one) => one.group).slice(0, GROUPS_MAX);
  const groups = names.length ? (await get("groups/describe", { arg: names }, signal)).value.groups : [];
  const rows = groups.flatMap((one) => one.partitions.filter((part) => part.topic === topic && part.partition === number).map((part) => ({ group: one.group, ...part })));
  const waiting = session.hasMetrics ? (await get("explain/waiting", {}, signal)).value : { operations: [] };
  const fetches = waiting.operations.filter((one) => one.keys.includes(`${topic}-${number}`));
  show(place, panel("Read now", table([
    { head: "Group", cell: (one) => link(`#/groups/${encodeURIComponent(one.group)}`, one.group) },
    { head: "Position", number: true, cell: (one) => count(one.committed) },
    { head: "Lag", number: true, cell: (one) => count(one.lag) },
    { head: "Read by", cell: (one) => one.memberIds.map((id) => h("div", { class: "mono" }, id)) },
  ], rows, { caption: "Groups that read the partition", empty: "no group has a position here" }),
  session.hasMetrics ? h("p", { class: "quiet" }, `${plural(fetches.length, "request")} wait for this partition. `, link("#/waiting", "All that wait")) : null, command(text)));
  return rows.filter((one) => one.committed !== null && one.committed >= log.logStartOffset);
}

const transactions = (log) => (log.openTransactions.length || log.abortedTransactions.length ? panel("Transactions",
  log.openTransactions.length ? table([
    { head: "Open since offset", number: true, cell: (one) => count(one.firstOffset) }, { head: "Producer id", number: true, cell: (one) => count(one.producerId) },
    { head: "Last write", cell: (one) => h("span", { class: "mono" }, time(one.lastTimestamp)) },
  ], log.openTransactions, { caption: "Open transactions" }) : null,
  log.abortedTransactions.length ? table([
    { head: "Aborted from", number: true, cell: (one) => count(one.firstOffset) }, { head: "to", number: true, cell: (one) => count(one.lastOffset) },
    { head: "Producer id", number: true, cell: (one) => count(one.producerId) },
  ], log.abortedTransactions, { caption: "Aborted transactions" }) : null) : null);

const epochs = (log) => (log.leaderEpochs.length ? panel("Leader epochs", table([
  { head: "Epoch", number: true, cell: (one) => count(one.epoch) }, { head: "First offset", number: true, cell: (one) => count(one.startOffset) },
], log.leaderEpochs, { caption: "Leader epochs" })) : null);

async function drawBatches(place, { topic, number, segment, byte, signal }) {
  show(place, h("p", { class: "quiet" }, "reading batch headers …"));
  try {
    const { value, command: text } = await lines("log/dump", {
      topic, partition: number, only: "log", segment: segment.baseOffset, "from-byte": String(byte), "max-bytes": WINDOW_BYTES,
    }, signal);
    const found = value.filter((entry) => entry.kind === "batch").slice(0, BATCHES_MAX);
    const first = found[0]?.position ?? 0;
    const last = found.at(-1);
    const span = last ? last.position + last.size - first : 1;
    const chosen = h("div", { "aria-live": "polite" });
    const choose = (batch) => show(chosen, batchFacts(batch, topic, number));
    const drawn = found.map((batch) => button(svg("rect", {
      class: ["batch", batch.isControl && "marker", batch.isTransactional && "transactional", !batch.isvalid && "invalid"].filter(Boolean).join(" "),
      x: ((batch.position - first) / span) * WIDTH, width: Math.max((batch.size / span) * WIDTH - 0.5, 0.7), y: 6, height: 34,
    }), `batch at byte ${batch.position}: offsets ${batch.baseOffset} to ${batch.lastOffset}, ${bytes(batch.size)}`, () => choose(batch)));
    show(place, panel(`Batches of segment ${count(segment.baseOffset)}`,
      h("p", { class: "quiet" }, last ? `${plural(found.length, "batch", "batches")} from byte ${count(first)} to ${count(first + span)} of ${bytes(segment.size)}. Choose one to see its header.` : "The segment has no batch there."),
      h("div", { class: "scroll" }, svg("svg", { viewBox: `0 0 ${WIDTH} 46`, width: "100%", role: "group", "aria-label": "Batches" }, drawn)), chosen, command(text)));
    if (found.length) choose(found[0]);
  } catch (error) {
    if (!signal.aborted) show(place, failure(error));
  }
}

export function button(element, label, act) {
  element.setAttribute("tabindex", "0");
  element.setAttribute("role", "button");
  element.setAttribute("aria-label", label);
  element.append(svg("title", null, label));
  element.addEventListener("click", act);
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      act(event);
    }
  });
  return element;
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
