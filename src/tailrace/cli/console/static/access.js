// Transactions, and who may do what: access control lists, SCRAM users, quotas.

import { get } from "./api.js";
import { command, count, failure, h, panel, show, table, time } from "./dom.js";

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
  head, number: form === count, cell: (one) => text(form ? form(one[name]) : one[name]), sort: (one) => one[name] ?? "",
}));
const text = (value) => (value === null || value === undefined ? "–" : typeof value === "object" && !(value instanceof Node) ? JSON.stringify(value) : value);

export async function transactionsPage(stage, { signal }) {
  show(stage, h("h1", null, "Transactions"), await part("Transactional ids", "transactions/list", (value) => value.transactions, cells([
    ["Transactional id", "transactionalId"], ["State", "state"], ["Producer id", "producerId", count], ["Coordinator", "coordinator", count],
  ]), "no producer has used a transaction", signal), await part("Hanging transactions", "transactions/find-hanging", (value) => value.hanging, cells([
    ["Topic", "topic"], ["Partition", "partition", count], ["Producer id", "producerId", count], ["Start offset", "startOffset", count], ["Last record", "lastTimestampMs", time],
  ]), "no transaction is left without a coordinator", signal));
}

export async function securityPage(stage, { signal }) {
  show(stage, h("h1", null, "Security"), await part("Access control", "acls/list", (value) => value.acls, cells([
    ["Principal", "principal"], ["Permission", "permission"], ["Operation", "operation"], ["Resource", "resourceType"], ["Name", "name"], ["Pattern", "pattern"], ["Host", "host"],
  ]), "there are no entries", signal), await part("SCRAM users", "users/list", (value) => value.users, cells([
    ["User", "name"], ["Mechanism", "mechanism"], ["Iterations", "iterations", count],
  ]), "no user has SCRAM credentials", signal), await part("Quotas", "quotas/list", (value) => value.quotas, cells([
    ["Entity", "entity"], ["Limits", "quotas"],
  ]), "no quota is set", signal));
}
