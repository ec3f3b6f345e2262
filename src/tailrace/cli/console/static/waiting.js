// Requests that wait in the broker, what would wake them, and the fetch sessions.

import { get, repeat } from "./api.js";
import { command, count, duration, facts, failure, h, link, panel, show, table } from "./dom.js";

const SHOWN = ["kind", "clientId", "user", "address", "waitedMs", "deadlineInMs", "keyCount", "keys", "maxWaitMs"];

export async function waitingPage(stage, { signal, session }) {
  if (!session.hasMetrics) {
    return show(stage, h("h1", null, "Waiting"), h("p", { class: "panel" }, "This page needs the metrics of a Tailrace broker: start the console with ",
      h("code", null, "--metrics HOST:PORT"), "."));
  }
  const state = h("div");
  show(stage, h("h1", null, "Waiting"), state);
  const read = async () => {
    const { value, command: text } = await get("explain/waiting", {}, signal);
    show(state, facts([
      ["Waiting requests", count(value.waiting)], ["Watched keys", count(value.watchedKeys)], ["Fetch sessions", count(value.sessionCount)],
      ["Completed", count(value.completed), "before their deadline"], ["At their deadline", count(value.expired)],
    ]), requests(value.operations), sessions(value.sessions), shares(value.sharePartitions), command(text));
  };
  await repeat(2000, signal, read, (error) => show(state, failure(error)));
}

const more = (one) => (one.keyCount > one.keys.length ? ` and ${count(one.keyCount - one.keys.length)} more` : "");
const others = (one) => Object.entries(one).filter(([name, value]) => !SHOWN.includes(name) && value !== null).map(([name, value]) => `${name} ${value}`).join(", ");

const requests = (all) => panel("Requests", table([
  { head: "Request", cell: (one) => one.kind, sort: (one) => one.kind },
  { head: "Client", cell: (one) => one.clientId ?? "–", sort: (one) => one.clientId ?? "" },
  { head: "User", cell: (one) => one.user ?? "–", sort: (one) => one.user ?? "" },
  { head: "Address", cell: (one) => h("span", { class: "mono" }, one.address ?? "–"), sort: (one) => one.address ?? "" },
  { head: "Has waited", number: true, cell: (one) => (one.waitedMs === null ? "–" : `${count(one.waitedMs)} ms`), sort: (one) => one.waitedMs ?? -1 },
  { head: "Deadline in", number: true, cell: (one) => `${count(one.deadlineInMs)} ms`, sort: (one) => one.deadlineInMs },
  { head: "Woken by", cell: (one) => one.keys.join(", ") + more(one) },
  { head: "Facts", cell: others },
], all, { caption: "Requests that wait", empty: "no request waits" }));

const sessions = (all) => panel("Fetch sessions", table([
  { head: "Session", number: true, cell: (one) => String(one.id) },
  { head: "Of a", cell: (one) => (one.isFollower ? "follower" : "consumer") },
  { head: "Partitions", number: true, cell: (one) => count(one.partitions), sort: (one) => one.partitions },
  { head: "Epoch", number: true, cell: (one) => count(one.epoch) },
  { head: "Age", number: true, cell: (one) => duration(one.ageMs / 1000), sort: (one) => one.ageMs },
  { head: "Last used", number: true, cell: (one) => `${duration(one.unusedMs / 1000)} ago`, sort: (one) => one.unusedMs },
], all, { caption: "Fetch sessions", empty: "no client has a session" }));

const shares = (all) => (all.length ? panel("Share groups", table([
  { head: "Group", cell: (one) => link(`#/groups/${encodeURIComponent(one.group)}`, one.group), sort: (one) => one.group },
  { head: "Topic", cell: (one) => one.topic, sort: (one) => one.topic }, { head: "Partition", number: true, cell: (one) => one.partition },
  { head: "From", number: true, cell: (one) => count(one.startOffset) }, { head: "Acquired", number: true, cell: (one) => count(one.acquired), sort: (one) => one.acquired },
  { head: "Available", number: true, cell: (one) => count(one.available), sort: (one) => one.available },
], all, { caption: "Records in flight of share groups" })) : null);
