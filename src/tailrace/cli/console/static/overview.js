// Overview: what is unhealthy and why, first; then brokers, quorum, disks and the traffic of this broker.

import { get, live, repeat } from "./api.js";
import { bytes, command, count, duration, facts, failure, h, link, panel, plural, show, spark, table } from "./dom.js";

const POINTS_MAX = 120;

export async function overview(stage, { signal, session }) {
  const state = h("div");
  const traffic = h("div");
  show(stage, h("h1", null, "Overview"), state, traffic);
  const read = async () => {
    const { value, command: text } = await get("cluster/status", {}, signal);
    show(state, health(value), facts([
      ["Brokers", count(value.brokers.length), value.brokers.some((one) => one.fenced) ? "some are fenced" : "all are active"],
      ["Topics", count(value.counts.topics), plural(value.counts.partitions, "partition")],
      ["Offline partitions", count(value.counts.offline)],
      ["Under-replicated", count(value.counts.underReplicated)],
      ["Largest replica lag", count(value.counts.maxLag), "records"],
    ]), brokers(value), quorum(value.quorum), command(text));
  };
  await repeat(5000, signal, read, (error) => show(state, failure(error)));
  if (session.hasMetrics) watch(traffic, signal);
}

const health = (value) => h("section", { class: value.healthy ? "panel" : "panel error", role: "status" },
  h("h2", { class: value.healthy ? "good" : "bad" }, value.healthy ? "Healthy" : "Unhealthy"),
  value.healthy ? h("p", null, "All partitions have a leader and all their replicas in sync.") : h("ul", null, value.problems.map((one) => h("li", null, one))),
  h("p", { class: "quiet" }, "Cluster ", h("code", null, value.clusterId)));

const brokers = (value) => panel("Brokers", table([
  { head: "Id", number: true, cell: (one) => count(one.id) },
  { head: "Address", cell: (one) => one.address },
  { head: "State", cell: (one) => one.error ? h("span", { class: "bad" }, one.error) : one.fenced ? h("span", { class: "warn" }, "fenced") : h("span", { class: "good" }, "active") },
  { head: "Leads", number: true, cell: (one) => count(one.leaders) },
  { head: "Replicas", number: true, cell: (one) => count(one.replicas) },
  { head: "Out of sync", number: true, cell: (one) => count(one.outOfSync) },
  { head: "Size", number: true, cell: (one) => bytes(one.size) },
  { head: "Directories", cell: (one) => one.logDirs.map((dir) => h("div", null, h("code", null, dir.path), " ",
    dir.error ? h("span", { class: "bad" }, dir.error) : h("span", { class: "quiet" }, `${bytes(dir.usableBytes)} of ${bytes(dir.totalBytes)} free`))) },
], value.brokers, { caption: "Brokers" }));

const quorum = (value) => value && panel("Controllers", h("p", null, `Leader ${value.leader}, epoch ${value.epoch}, metadata up to offset ${count(value.highWatermark)}`), table([
  { head: "Id", number: true, cell: (one) => count(one.id) },
  { head: "Address", cell: (one) => one.address ?? "–" },
  { head: "Lag", number: true, cell: (one) => count(one.lag) },
  { head: "Caught up", number: true, cell: (one) => (one.caughtUpMsAgo === null ? "–" : `${duration(one.caughtUpMsAgo / 1000)} ago`) },
], value.voters, { caption: "Controllers" }));

// Traffic, from the broker's metrics; the points of the lines are those since this page was opened.
function watch(place, signal) {
  const series = { messages_in_per_s: [], bytes_in_per_s: [], bytes_out_per_s: [], requests_per_s: [] };
  live("top", { interval: 2 }, signal, (seen) => {
    for (const [name, points] of Object.entries(series)) {
      points.push(seen.rates[name] ?? 0);
      if (points.length > POINTS_MAX) points.shift();
    }
    const rate = (name, form) => [form(seen.rates[name] ?? 0), spark(series[name], `${name} since this page was opened`)];
    const busy = seen.apis.filter((one) => one.requests_per_s > 0);
    show(place, panel("Traffic of this broker", facts([
      ["Records in", ...rate("messages_in_per_s", (value) => `${count(Math.round(value))}/s`)],
      ["Bytes in", ...rate("bytes_in_per_s", (value) => `${bytes(Math.round(value))}/s`)],
      ["Bytes out", ...rate("bytes_out_per_s", (value) => `${bytes(Math.round(value))}/s`)],
      ["Requests", ...rate("requests_per_s", (value) => `${count(Math.round(value))}/s`)],
      ["Connections", count(seen.facts.connections)],
      ["Waiting requests", count(seen.facts.waiting)],
      ["Fetch sessions", count(seen.facts.fetch_sessions)],
      ["Memory", bytes(seen.facts.memory_bytes)],
      ["Loop busy", `${((seen.facts.loop_busy ?? 0) * 100).toFixed(1)} %`],
      ["Uptime", duration(seen.facts.uptime_s)],
    ]), busy.length ? table([
      { head: "Request", cell: (one) => one.api },
      { head: "per second", number: true, cell: (one) => one.requests_per_s.toFixed(1), sort: (one) => one.requests_per_s },
      { head: "Errors/s", number: true, cell: (one) => one.errors_per_s.toFixed(1), sort: (one) => one.errors_per_s },
      { head: "P50", number: true, cell: (one) => milliseconds(one.p50_ms) },
      { head: "P99", number: true, cell: (one) => milliseconds(one.p99_ms), sort: (one) => one.p99_ms ?? 0 },
    ], busy, { caption: "Requests" }) : null, h("p", { class: "quiet" }, link("#/topics", "Topics"), " have sizes and lag.")));
  }, (error) => show(place, failure(error)));
}

const milliseconds = (value) => (value === null || value === undefined ? "–" : `${value.toFixed(1)} ms`);
