// Spark queries that read and write the topics of this cluster, and exports to tables.

import { get, repeat } from "./api.js";
import { ago, command, count, duration, failure, h, link, panel, show, table } from "./dom.js";

export async function sparkPage(stage, { signal }) {
  const state = h("div");
  show(stage, h("h1", null, "Spark"), state);
  await repeat(5000, signal, async () => {
    const { value, command: text } = await get("cluster/queries", {}, signal);
    show(state, panel("Queries that read, and exports to tables", table([
      { head: "Group", cell: (one) => link(`#/groups/${encodeURIComponent(one.group)}`, one.group), sort: (one) => one.group },
      { head: "Kind", cell: (one) => (one.table ? `table ${one.table}` : one.kind), sort: (one) => one.table ?? "" },
      { head: "Topics", cell: (one) => one.topics.map((topic) => h("div", null, link(`#/topics/${encodeURIComponent(topic)}`, topic))) },
      { head: "Batch", number: true, cell: (one) => count(one.batch), sort: (one) => one.batch ?? -1 },
      { head: "Offsets", number: true, cell: (one) => count(one.batchOffsets), sort: (one) => one.batchOffsets ?? -1 },
      { head: "Lag", number: true, cell: (one) => h("span", { class: one.lag ? "warn" : "" }, count(one.lag)), sort: (one) => one.lag },
      { head: "Lag in time", number: true, cell: (one) => duration(one.lagSeconds), sort: (one) => one.lagSeconds ?? -1 },
      { head: "Last commit", number: true, cell: (one) => ago(one.committedAt), sort: (one) => one.committedAt },
    ], value.reads, { caption: "Queries that read", empty: "No stream has the option commitOffsetsToGroup, and no export has --group." })),
    panel("Queries that write exactly once", table([
      { head: "Transactional id", cell: (one) => h("span", { class: "mono" }, one.transactionalId), sort: (one) => one.transactionalId },
      { head: "Topic", cell: (one) => link(`#/topics/${encodeURIComponent(one.topic)}`, one.topic), sort: (one) => one.topic },
      { head: "Batch", number: true, cell: (one) => count(one.batch), sort: (one) => one.batch },
      { head: "Rows", number: true, cell: (one) => count(one.rows), sort: (one) => one.rows },
      { head: "Tasks", number: true, cell: (one) => count(one.tasks) },
      { head: "Last commit", number: true, cell: (one) => ago(one.committedAt), sort: (one) => one.committedAt ?? 0 },
      { head: "State", cell: (one) => (one.finished ? "finished" : h("span", { class: "warn" }, "being committed")) },
      { head: "Query", cell: (one) => h("span", { class: "mono" }, one.query) },
    ], value.writes, { caption: "Queries that write", empty: "No query has written with Tailrace's sink." })), command(text));
  }, (error) => show(state, failure(error)));
}
