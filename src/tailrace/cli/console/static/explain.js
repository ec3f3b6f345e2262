// The steps of a read, drawn: bounds, floor segment, probes of the index, the walk over batch headers, the slice.

import { get } from "./api.js";
import { bytes, command, count, failure, field, h, panel, plural, show, svg, table, time } from "./dom.js";

const WIDTH = 1200;

export function explainForm(place, { topic, number, query, signal, log }) {
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
