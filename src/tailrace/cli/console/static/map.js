// The map of a log: segments to scale by bytes, and under them what lies at which offset.

import { bytes, count, plural, svg } from "./dom.js";
import { button } from "./log.js";

const WIDTH = 1200;
const LEAST = 6; // pixels of an empty segment
const TOP = 22;
const HEIGHT = 50;
const ROW = 18;

export function drawMap(log, readers, open) {
  const places = layout(log);
  const at = (offset) => placeOf(log, places, offset);
  const drawn = log.segments.map((one, slot) => drawSegment(log, one, places[slot], slot === log.segments.length - 1, open));
  let y = TOP + HEIGHT + 8;
  const rows = [];
  const add = (name, marks) => {
    if (!marks.length) return;
    rows.push(svg("g", { role: "img", "aria-label": name }, marks.map((draw) => draw(y))));
    y += ROW;
  };
  const labels = spaced();
  add("Leader epochs and producer snapshots", [
    ...log.leaderEpochs.map((one) => (top) => [svg("rect", { class: "key epoch", x: at(one.startOffset), y: top, width: 3, height: 12 }),
      labels(at(one.startOffset), `epoch ${one.epoch}`, top + 11)]),
    ...log.segments.map((one, slot) => (one.hasSnapshot ? (top) => svg("circle", { class: "key snapshot", cx: Math.max(places[slot].x, 5), cy: top + 6, r: 5 }, svg("title", null, `producer snapshot at offset ${count(one.baseOffset)}`)) : null)).filter(Boolean),
  ]);
  const span = (one, end, kind, label) => (top) => svg("rect", { class: `key ${kind}`, x: at(one), y: top, width: Math.max(at(end) - at(one), 3), height: 10, rx: 2 }, svg("title", null, label));
  add("Transactions", [
    ...log.abortedTransactions.map((one) => span(one.firstOffset, one.lastOffset + 1, "aborted", `aborted transaction of producer ${one.producerId}, offsets ${count(one.firstOffset)} to ${count(one.lastOffset)}`)),
    ...log.openTransactions.map((one) => span(one.firstOffset, log.logEndOffset, "open", `open transaction of producer ${one.producerId} since offset ${count(one.firstOffset)}`)),
  ]);
  const names = spaced();
  add("Positions of groups", readers.map((one) => (top) => [
    svg("path", { class: "key reader", d: `M${at(one.committed)} ${top} l6 11 l-12 0 z` }, svg("title", null, `${one.group} reads at ${count(one.committed)}`)),
    names(at(one.committed) + 8, one.group, top + 11),
  ]));
  y += 4;
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${y + 12}`, class: "map", role: "group", "aria-label": "Segments" }, drawn, rows,
    svg("text", { x: 0, y: y + 8 }, count(log.logStartOffset)), svg("text", { x: WIDTH, y: y + 8, "text-anchor": "end" }, `log end ${count(log.logEndOffset)}`));
}

function layout(log) {
  const scale = (WIDTH - LEAST * log.segments.length) / Math.max(log.size, 1);
  let x = 0;
  return log.segments.map((one) => {
    const place = { x, width: Math.max(LEAST + one.size * scale, 0.5) };
    x += place.width;
    return place;
  });
}

// Offsets are taken as evenly spread within a segment.
function placeOf(log, places, offset) {
  let slot = log.segments.findLastIndex((one) => one.baseOffset <= offset);
  if (slot < 0) slot = 0;
  const one = log.segments[slot];
  const share = (offset - one.baseOffset) / Math.max(one.endOffset - one.baseOffset, 1);
  return places[slot].x + Math.min(Math.max(share, 0), 1) * (places[slot].width - 1);
}

// Draws a label unless it would cover the one before it.
function spaced() {
  let free = -1;
  return (x, text, y) => {
    const shown = text.length > 24 ? `${text.slice(0, 23)}…` : text;
    if (x < free || x + 4 + shown.length * 7.5 > WIDTH) return null;
    free = x + 12 + shown.length * 7.5;
    return svg("text", { x: x + 5, y }, shown);
  };
}

function drawSegment(log, one, { x, width }, isActive, open) {
  const isDirty = log.compaction && one.size > 0 && one.baseOffset >= log.compaction.firstDirtyOffset && one.baseOffset < log.compaction.firstUncleanableOffset;
  const label = `segment ${one.baseOffset}: offsets ${count(one.baseOffset)} to ${count(one.endOffset)}, ${bytes(one.size)}, ${plural(one.indexEntries, "index entry", "index entries")}${isActive ? ", active" : ""}${one.deletion ? `, ${one.deletion}` : ""}${isDirty ? ", cleaned next" : ""}`;
  const rect = button(svg("rect", {
    class: ["segment", isActive && "active", one.deletion && "going", isDirty && "dirty"].filter(Boolean).join(" "), x: x + 1, y: TOP, width: Math.max(width - 2, 1), height: HEIGHT, rx: 3,
  }), label, (event) => {
    const box = rect.getBoundingClientRect();
    const share = event.clientX === undefined ? 0 : (event.clientX - box.left) / Math.max(box.width, 1);
    open(one, Math.floor(Math.min(Math.max(share, 0), 0.9999) * one.size));
  });
  const most = Math.max(...one.indexDensity, 1);
  const part = (width - 2) / one.indexDensity.length;
  const density = part < 0.5 ? null : one.indexDensity.map((entries, slot) => entries ? svg("rect", {
    class: "density", x: x + 1 + slot * part, width: Math.max(part - 0.5, 0.5), y: TOP + HEIGHT - (entries / most) * 16, height: (entries / most) * 16,
  }) : null).filter(Boolean);
  return svg("g", null, rect, density, width > 90 ? svg("text", { x: x + 6, y: 14 }, count(one.baseOffset)) : null);
}
