// Transactions, and who may do what: access control lists, SCRAM users, quotas.

import { get, live, post } from "./api.js";
import { bytes, command, count, dialog, duration, failure, h, link, notice, panel, show, table, time } from "./dom.js";

// Draws the table of one command; a refusal stands in its place.
async function part(title, path, pick, columns, empty, signal) {
  try {
    const { value, command: text } = await get(path, {}, signal);
    return panel(title, table(columns, pick(value), { caption: title, empty }), command(text));
  } catch (error) {
    if (error.status === 401) throw error;
    return panel(title, error.code === "SECURITY_DISABLED" ? h("p", { class: "quiet" }, "No authorizer is configured: every client may do everything.") : failure(error), command(error.command));
  }
}

const cells = (columns) => columns.map(([head, name, form]) => ({
  head, number: form === count, cell: (one) => text_(form ? form(one[name]) : one[name]), sort: (one) => one[name] ?? "",
}));
const text_ = (value) => (value === null || value === undefined ? "–" : typeof value === "object" && !(value instanceof Node) ? JSON.stringify(value) : value);

export async function transactionsPage(stage, context) {
  const { signal, session, names: [name] } = context;
  if (name) return transactionPage(stage, name, signal);
  const again = () => transactionsPage(stage, context);
  show(stage, h("h1", null, "Transactions"), await part("Transactional ids", "transactions/list", (value) => value.transactions, [
    { head: "Transactional id", cell: (one) => link(`#/transactions/${encodeURIComponent(one.transactionalId)}`, one.transactionalId), sort: (one) => one.transactionalId },
    { head: "State", cell: (one) => h("span", { class: one.state === "Ongoing" ? "warn" : "" }, one.state), sort: (one) => one.state },
    ...cells([["Producer id", "producerId", count], ["Coordinator", "coordinator", count]]),
  ], "no producer has used a transaction", signal), await part("Hanging transactions", "transactions/find-hanging", (value) => value.hanging, [
    ...cells([["Topic", "topic"], ["Partition", "partition", count], ["Producer id", "producerId", count], ["Start offset", "startOffset", count], ["Last record", "lastTimestampMs", time]]),
    session.mayWrite ? { head: "Abort", cell: (one) => h("button", { type: "button", class: "small", onclick: () => abort(one, again) }, "abort") } : null,
  ].filter(Boolean), "no transaction is left without a coordinator", signal));
}

async function transactionPage(stage, name, signal) {
  const { value, command: text } = await get("transactions/describe", { arg: name }, signal);
  const [found] = value.transactions;
  const rows = Object.entries(found).filter(([id]) => id !== "partitions");
  show(stage, h("h1", null, name), panel("Transaction", h("dl", { class: "pairs" }, rows.map(([id, one]) => [h("dt", null, id), h("dd", null, /Ms$/.test(id) && one > 1e12 ? time(one) : text_(one))]))),
    panel("Partitions", found.partitions?.length ? h("ul", null, found.partitions.map((one) => h("li", null, link(`#/topics/${encodeURIComponent(one.topic ?? one)}`, one.topic === undefined ? one : `${one.topic}-${one.partition}`)))) : h("p", { class: "quiet" }, "no partition is in an open transaction"), command(text)));
}

function abort(one, done) {
  const result = h("div");
  const shown = dialog(`Abort the transaction in ${one.topic}-${one.partition}?`,
    h("p", null, `The records of producer ${one.producerId} from offset ${count(one.startOffset)} on are aborted in this partition. Neither the coordinator nor other partitions are notified.`), result,
    h("p", null, h("button", { type: "button", class: "main", onclick: async () => {
      try {
        const { command: text } = await post("transactions/abort", { arg: `${one.topic}-${one.partition}`, "start-offset": one.startOffset });
        shown.close();
        notice(`The transaction in ${one.topic}-${one.partition} is aborted.`, text);
        await done();
      } catch (error) {
        show(result, failure(error));
      }
    } }, "Abort"), " ", h("button", { type: "button", onclick: () => shown.close() }, "Cancel")));
}

export async function securityPage(stage, { signal, session }) {
  const throttled = h("div");
  show(stage, h("h1", null, "Security"), await part("Access control", "acls/list", (value) => value.acls, cells([
    ["Principal", "principal"], ["Permission", "permission"], ["Operation", "operation"], ["Resource", "resourceType"], ["Name", "name"], ["Pattern", "pattern"], ["Host", "host"],
  ]), "there are no entries", signal), await part("SCRAM users", "users/list", (value) => value.users, cells([
    ["User", "name"], ["Mechanism", "mechanism"], ["Iterations", "iterations", count],
  ]), "no user has SCRAM credentials", signal), await part("Quotas", "quotas/list", (value) => value.quotas, cells([
    ["Entity", "entity"], ["Limits", "quotas"],
  ]), "no quota is set", signal), throttled);
  if (!session.hasMetrics) return;
  live("top", { interval: 2 }, signal, (seen) => show(throttled, panel("Throttled now", table([
    { head: "User", cell: (one) => one.user || "–" }, { head: "Client id", cell: (one) => one.client_id || "–" }, { head: "Quota", cell: (one) => one.quota },
    { head: "Rate", number: true, cell: (one) => (one.quota === "request" ? `${one.rate.toFixed(1)} %` : `${bytes(Math.round(one.rate))}/s`) },
    { head: "Paused for", number: true, cell: (one) => duration(one.pause_ms / 1000) },
  ], seen.throttled ?? [], { caption: "Throttled now", empty: "no client is slowed down by a quota" }))), (error) => show(throttled, failure(error)));
}