// Groups of all kinds: members, assignments and lag; a reset shows its plan before it changes anything.

import { get, post, repeat } from "./api.js";
import { chart, command, count, duration, facts, failure, field, h, link, panel, plural, show, table } from "./dom.js";

export async function groupsPage(stage, { signal }) {
  const [listed, lags] = await Promise.all([get("groups/list", {}, signal), get("groups/lag", { times: true }, signal)]);
  const sums = new Map();
  const ages = new Map();
  for (const one of lags.value.lags) {
    sums.set(one.group, (sums.get(one.group) ?? 0) + one.lag);
    if (one.lagSeconds !== null) ages.set(one.group, Math.max(ages.get(one.group) ?? 0, one.lagSeconds));
  }
  show(stage, h("h1", null, "Groups"), h("p", { class: "quiet" }, plural(listed.value.groups.length, "group")), table([
    { head: "Group", cell: (one) => link(`#/groups/${encodeURIComponent(one.group)}`, one.group), sort: (one) => one.group },
    { head: "Kind", cell: (one) => one.type || "–", sort: (one) => one.type },
    { head: "State", cell: (one) => one.state || "–", sort: (one) => one.state },
    { head: "Lag", number: true, cell: (one) => count(sums.get(one.group)), sort: (one) => sums.get(one.group) ?? -1 },
    { head: "Lag in time", number: true, cell: (one) => (ages.has(one.group) ? duration(ages.get(one.group)) : "–"), sort: (one) => ages.get(one.group) ?? -1 },
  ], listed.value.groups, { caption: "Groups", empty: "no group has members or committed offsets" }), command(listed.command));
}

export async function groupPage(stage, { names: [name], signal, session }) {
  const state = h("div");
  const past = h("div");
  show(stage, h("h1", null, name), state, past, session.mayWrite ? reset(name) : null);
  const points = []; // since this page was opened, if the console keeps no history
  await repeat(5000, signal, async () => {
    const { value, command: text } = await get("groups/describe", { arg: name, times: true }, signal);
    const [group] = value.groups;
    const flying = group.type === "share" && session.hasMetrics ? (await get("explain/waiting", {}, signal)).value.sharePartitions.filter((one) => one.group === name) : null;
    const focused = document.activeElement?.closest("main table");
    if (!focused) show(state, description(group), flying ? inFlight(flying) : null, command(text));
    await drawPast(past, group, points, signal, session);
  }, (error) => show(state, failure(error)));
}

async function drawPast(place, group, points, signal, session) {
  const { lag, seconds } = totals(group);
  points.push({ time: Date.now(), lag, seconds });
  if (points.length > 720) points.shift();
  const { value, command: text } = session.hasHistory ? await get("history/lag", { arg: group.group }, signal) : { value: { points: [] } };
  const all = value.points.length > 1 ? value.points : points;
  const since = all === points ? "since this page was opened" : `over the last ${duration((all.at(-1).time - all[0].time) / 1000)}`;
  show(place, panel(`Lag ${since}`, chart(all.map((one) => ({ time: one.time, value: one.lag })), "records", count),
    chart(all.map((one) => ({ time: one.time, value: one.seconds })), "time", duration), all === points ? null : command(text)));
}

const totals = (group) => ({
  lag: group.partitions.reduce((sum, one) => sum + (one.lag ?? 0), 0),
  seconds: group.partitions.reduce((most, one) => (one.lagSeconds === null ? most : Math.max(most ?? 0, one.lagSeconds)), null),
});

const inFlight = (all) => panel("Records in flight", table([
  { head: "Topic", cell: (one) => one.topic }, { head: "Partition", number: true, cell: (one) => one.partition },
  { head: "From", number: true, cell: (one) => count(one.startOffset) }, { head: "To", number: true, cell: (one) => count(one.endOffset) },
  { head: "Acquired", number: true, cell: (one) => count(one.acquired) }, { head: "Available", number: true, cell: (one) => count(one.available) },
  { head: "Acknowledged", number: true, cell: (one) => count(one.acknowledged) }, { head: "Archived", number: true, cell: (one) => count(one.archived) },
  { head: "Held by", cell: (one) => one.members.map((member) => h("div", { class: "mono" }, `${member.memberId}: ${count(member.acquired)}`)) },
], all, { caption: "Records in flight", empty: "no partition has records in flight at this broker" }));

function description(group) {
  const { lag, seconds } = totals(group);
  return [facts([
    ["Kind", group.type || "–"], ["State", group.state || "–"], ["Members", count(group.members.length)],
    ["Lag", count(lag), "records"], ["Lag in time", duration(seconds), "age of the oldest unread record"],
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
    { head: "Lag in time", number: true, cell: (one) => duration(one.lagSeconds), sort: (one) => one.lagSeconds ?? -1 },
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
