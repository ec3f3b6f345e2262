// Groups of all kinds: members, assignments and lag; a reset shows its plan before it changes anything.

import { get, post, repeat } from "./api.js";
import { command, count, facts, failure, field, h, link, panel, plural, show, spark, table } from "./dom.js";

const POINTS_MAX = 360;
const history = new Map(); // of lags since this page was opened, by group

export async function groupsPage(stage, { signal }) {
  const [listed, lags] = await Promise.all([get("groups/list", {}, signal), get("groups/lag", {}, signal)]);
  const sums = new Map();
  for (const one of lags.value.lags) sums.set(one.group, (sums.get(one.group) ?? 0) + one.lag);
  show(stage, h("h1", null, "Groups"), h("p", { class: "quiet" }, plural(listed.value.groups.length, "group")), table([
    { head: "Group", cell: (one) => link(`#/groups/${encodeURIComponent(one.group)}`, one.group), sort: (one) => one.group },
    { head: "Kind", cell: (one) => one.type || "–", sort: (one) => one.type },
    { head: "State", cell: (one) => one.state || "–", sort: (one) => one.state },
    { head: "Lag", number: true, cell: (one) => count(sums.get(one.group)), sort: (one) => sums.get(one.group) ?? -1 },
  ], listed.value.groups, { caption: "Groups", empty: "no group has members or committed offsets" }), command(listed.command));
}

export async function groupPage(stage, { names: [name], signal, session }) {
  const state = h("div");
  show(stage, h("h1", null, name), state, session.mayWrite ? reset(name) : null);
  const read = async () => {
    const { value, command: text } = await get("groups/describe", { arg: name }, signal);
    show(state, description(value.groups[0]), command(text));
  };
  await repeat(5000, signal, read, (error) => show(state, failure(error)));
}

function description(group) {
  const lag = group.partitions.reduce((sum, one) => sum + (one.lag ?? 0), 0);
  const points = history.get(group.group) ?? [];
  points.push(lag);
  if (points.length > POINTS_MAX) points.shift();
  history.set(group.group, points);
  return [facts([
    ["Kind", group.type || "–"], ["State", group.state || "–"], ["Members", count(group.members.length)],
    ["Lag", count(lag), points.length > 1 ? spark(points, "lag since this page was opened") : "records"],
    ["Assignor", group.protocol || "–"],
  ]), panel("Members", table([
    { head: "Member", cell: (one) => h("span", { class: "mono" }, one.memberId) },
    { head: "Client", cell: (one) => one.clientId }, { head: "Host", cell: (one) => one.host },
    { head: "Static id", cell: (one) => one.instanceId ?? "–" },
    { head: "Partitions", number: true, cell: (one) => count(one.partitions.length) },
  ], group.members, { caption: "Members", empty: "the group has no members now" })),
  panel("Partitions", table([
    { head: "Topic", cell: (one) => link(`#/topics/${encodeURIComponent(one.topic)}`, one.topic), sort: (one) => one.topic },
    { head: "Partition", number: true, cell: (one) => one.partition, sort: (one) => one.partition },
    { head: group.type === "share" ? "Start offset" : "Committed", number: true, cell: (one) => count(one.committed), sort: (one) => one.committed ?? -1 },
    { head: "End", number: true, cell: (one) => count(one.end), sort: (one) => one.end ?? -1 },
    { head: "Lag", number: true, cell: (one) => h("span", { class: one.lag ? "warn" : "" }, count(one.lag)), sort: (one) => one.lag ?? -1 },
    { head: "Members", cell: (one) => one.memberIds.map((id) => h("div", { class: "mono" }, id)) },
  ], group.partitions, { caption: "Partitions", empty: "the group has committed no offsets" }))];
}

function reset(name) {
  const where = h("select", null, ["to-earliest", "to-latest", "to-offset", "to-datetime", "shift-by"].map((one) => h("option", { value: one }, one)));
  const value = h("input", { placeholder: "offset, time or number" });
  const topic = h("input", { placeholder: "all of the group" });
  const result = h("div", { "aria-live": "polite" });
  const ask = async (isExecuted) => {
    const isFlag = where.value === "to-earliest" || where.value === "to-latest";
    try {
      const { value: plan, command: text } = await post("groups/reset", { arg: name, topic: topic.value, [where.value]: isFlag ? true : value.value, yes: isExecuted });
      show(result, table([
        { head: "Topic", cell: (one) => one.topic }, { head: "Partition", number: true, cell: (one) => one.partition },
        { head: "From", number: true, cell: (one) => count(one.from) }, { head: "To", number: true, cell: (one) => count(one.to) },
      ], plan.offsets, { caption: "Plan" }), command(text), plan.executed ? h("p", { class: "good" }, "The offsets are changed.")
        : h("button", { type: "button", class: "main", onclick: () => ask(true) }, "Change the offsets"));
    } catch (error) {
      show(result, failure(error));
    }
  };
  return panel("Reset offsets", h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); ask(false); } },
    field("Where", where), field("Value", value), field("Topic", topic), h("button", null, "Show the plan")), result);
}
