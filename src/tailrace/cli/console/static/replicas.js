// Replicas of a topic: the race of the followers and of the high watermark, live.

import { get, live } from "./api.js";
import { command, count, failure, field, h, link, panel, plural, show, svg, table } from "./dom.js";

const WIDTH = 560;
const POINTS_MAX = 120;

export async function replicasPage(stage, { names: [topic], signal }) {
  if (!topic) return choose(stage, signal);
  const state = h("div");
  const { command: text } = await get("cluster/status", { topic }, signal);
  show(stage, h("h1", null, `Replicas of ${topic}`), h("p", { class: "quiet" }, "Read once a second. A bar is a log: where each replica ends, and the high watermark, up to which consumers may read."),
    state, command(text.replace("cluster status", "cluster status --watch 1")));
  const history = new Map(); // partition → end offsets of the last readings
  live("cluster/status", { topic }, signal, (value) => {
    if (!value.partitions) return show(state, failure(new Error(value.problems.join(", "))));
    show(state, h("p", { class: value.healthy ? "good" : "bad", role: "status" }, value.healthy ? "All replicas are in sync." : value.problems.join(", ")),
      value.partitions.map((one) => race(one, history)));
  }, (error) => show(state, failure(error)));
}

async function choose(stage, signal) {
  const { value, command: text } = await get("cluster/status", { all: true }, signal);
  const topics = new Map();
  for (const one of value.partitions) {
    const sum = topics.get(one.topic) ?? { topic: one.topic, partitions: 0, replicas: 0, behind: 0, lag: 0 };
    sum.partitions += 1;
    sum.replicas = Math.max(sum.replicas, one.replicas.length);
    sum.behind += one.underReplicated ? 1 : 0;
    sum.lag = Math.max(sum.lag, ...Object.values(one.lag).map((lag) => lag ?? 0), 0);
    topics.set(one.topic, sum);
  }
  const filter = h("input", { type: "search", placeholder: "part of a name", oninput: () => draw() });
  const list = h("div");
  const draw = () => show(list, table([
    { head: "Topic", cell: (one) => link(`#/replicas/${encodeURIComponent(one.topic)}`, one.topic), sort: (one) => one.topic },
    { head: "Partitions", number: true, cell: (one) => count(one.partitions), sort: (one) => one.partitions },
    { head: "Replicas", number: true, cell: (one) => count(one.replicas), sort: (one) => one.replicas },
    { head: "Out of sync", number: true, cell: (one) => h("span", { class: one.behind ? "bad" : "" }, count(one.behind)), sort: (one) => one.behind },
    { head: "Largest lag", number: true, cell: (one) => count(one.lag), sort: (one) => one.lag },
  ], [...topics.values()].filter((one) => one.topic.toLowerCase().includes(filter.value.toLowerCase())), { caption: "Topics", empty: "there is no such topic" }));
  draw();
  show(stage, h("h1", null, "Replicas"), h("p", { class: "quiet" }, `${plural(topics.size, "topic")}. Choose one to watch its followers.`),
    h("form", { class: "row", onsubmit: (event) => event.preventDefault() }, field("Filter", filter)), list, command(text));
}

function race(one, history) {
  const ends = one.replicas.map((id) => [id, one.logEndOffsets[id] ?? (id === one.leader ? one.highWatermark : null)]);
  const leaderEnd = one.logEndOffsets[one.leader] ?? one.highWatermark ?? 0;
  const points = history.get(one.partition) ?? [];
  points.push(leaderEnd);
  if (points.length > POINTS_MAX) points.shift();
  history.set(one.partition, points);
  // The bars begin where the leader was a moment ago, so that a small lag is visible in a long log.
  const known = ends.map(([, end]) => end).filter((end) => end !== null);
  const low = Math.max(0, Math.min(points[0], one.highWatermark ?? leaderEnd, ...known) - 1);
  const x = (offset) => ((offset - low) / Math.max(leaderEnd - low, 1)) * WIDTH;
  const mark = one.highWatermark ?? null;
  return panel(`Partition ${one.partition}`, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Replicas of partition ${one.partition}` }, h("table", { class: "race" },
    h("thead", null, h("tr", null, ["Replica", "State", "Log end", "Lag", `from offset ${count(low)} to ${count(leaderEnd)}, high watermark ${count(mark)}`].map((head, at) => h("th", { scope: "col", class: at === 0 || at === 2 || at === 3 ? "number" : null }, head)))),
    h("tbody", null, ends.map(([id, end]) => h("tr", null, h("td", { class: "number" }, id),
      h("td", null, id === one.leader ? "leader" : one.isr.includes(id) ? "in sync" : h("span", { class: "bad" }, "out of sync")),
      h("td", { class: "number" }, count(end)), h("td", { class: "number" }, id === one.leader ? "–" : count(one.lag[id])),
      h("td", null, end === null ? h("span", { class: "bad" }, "does not respond") : svg("svg", { viewBox: `0 0 ${WIDTH} 18`, class: "bar", role: "img", "aria-label": `replica ${id} ends at ${end}` },
        svg("rect", { class: id === one.leader ? "bar leader" : "bar", x: 0, y: 3, width: Math.max(x(end), 1), height: 12, rx: 2 }),
        mark === null ? null : svg("line", { class: "mark", x1: Math.min(x(mark), WIDTH - 1), x2: Math.min(x(mark), WIDTH - 1), y1: 0, y2: 18 }))))))))
  );
}
