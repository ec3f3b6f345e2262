// Topics: the list with sizes, rates and the lag of the slowest group; a topic with partitions, records and configs.

import { get, live, post } from "./api.js";
import { bytes, command, count, dialog, facts, failure, field, h, link, notice, panel, plural, show, table } from "./dom.js";
import { records } from "./records.js";

export const topicHref = (name, tab) => `#/topics/${encodeURIComponent(name)}${tab ? `?tab=${tab}` : ""}`;

export async function topicsPage(stage, { query, signal, session }) {
  const [listed, offsets, lags] = await Promise.all([
    get("topics/list", { internal: query.has("internal") }, signal),
    get("offsets", {}, signal),
    get("groups/lag", {}, signal).catch(() => ({ value: { lags: [] } })),
  ]);
  const records = new Map();
  for (const one of offsets.value.partitions) records.set(one.topic, (records.get(one.topic) ?? 0) + one.latest - one.earliest);
  const slowest = new Map();
  for (const one of lags.value.lags) if ((slowest.get(one.topic)?.lag ?? -1) < one.lag) slowest.set(one.topic, one);
  let traffic = new Map();
  const filter = h("input", { type: "search", placeholder: "part of a name", oninput: () => draw() });
  const list = h("div");
  let drawn = null; // the table
  const draw = () => {
    const shown = listed.value.topics.filter((one) => one.name.toLowerCase().includes(filter.value.toLowerCase()));
    drawn = table([
      { head: "Topic", cell: (one) => [link(topicHref(one.name), one.name), one.internal ? h("span", { class: "badge" }, "internal") : null], sort: (one) => one.name },
      { head: "Partitions", number: true, cell: (one) => count(one.partitionCount), sort: (one) => one.partitionCount },
      { head: "Replicas", number: true, cell: (one) => count(one.replicationFactor), sort: (one) => one.replicationFactor },
      { head: "Records", number: true, cell: (one) => count(records.get(one.name)), sort: (one) => records.get(one.name) ?? -1 },
      { head: "Size", number: true, cell: (one) => bytes(traffic.get(one.name)?.size_bytes), sort: (one) => traffic.get(one.name)?.size_bytes ?? -1 },
      { head: "Records in", number: true, cell: (one) => (traffic.has(one.name) ? `${count(Math.round(traffic.get(one.name).messages_in_per_s))}/s` : "–"), sort: (one) => traffic.get(one.name)?.messages_in_per_s ?? -1 },
      { head: "Largest lag", number: true, cell: (one) => lagCell(slowest.get(one.name)), sort: (one) => slowest.get(one.name)?.lag ?? -1 },
    ], shown, { caption: "Topics", empty: "there is no such topic" });
    show(list, h("p", { class: "quiet" }, plural(shown.length, "topic")), drawn);
  };
  draw();
  live("top", { interval: 2 }, signal, (seen) => {
    traffic = new Map(seen.topics.map((one) => [one.topic, one]));
    drawn.refresh?.(); // a list without rows is no table
  });
  show(stage, h("h1", null, "Topics"),
    h("form", { class: "row", onsubmit: (event) => event.preventDefault() }, field("Filter", filter),
      link(query.has("internal") ? "#/topics" : "#/topics?internal", query.has("internal") ? "without internal topics" : "with internal topics"),
      session.mayWrite ? h("button", { type: "button", class: "main", onclick: () => createTopic() }, "Create a topic") : null),
    list, command(listed.command));
}

const lagCell = (lag) => lag && [h("span", { class: lag.lag ? "warn" : "" }, count(lag.lag)), " ", link(`#/groups/${encodeURIComponent(lag.group)}`, lag.group)];

function createTopic() {
  const name = h("input", { required: true, pattern: "[a-zA-Z0-9._\\-]{1,249}", title: "letters, digits, dots, dashes and underscores" });
  const partitions = h("input", { type: "number", min: 1, value: "1" });
  const configs = h("textarea", { rows: 3, placeholder: "retention.ms=86400000" });
  const result = h("div");
  const create = async (event) => {
    event.preventDefault();
    try {
      const { command: text } = await post("topics/create", { arg: name.value, partitions: partitions.value, config: configs.value.split("\n").map((line) => line.trim()) });
      shown.close();
      notice(`The topic ${name.value} is created.`, text);
      location.hash = topicHref(name.value);
    } catch (error) {
      show(result, failure(error));
    }
  };
  const shown = dialog("Create a topic", h("form", { onsubmit: create },
    field("Name", name), field("Partitions", partitions), field("Configs, one KEY=VALUE in a line", configs), result,
    h("p", null, h("button", { class: "main" }, "Create"), " ", h("button", { type: "button", onclick: () => shown.close() }, "Cancel"))));
}

const TABS = [["partitions", "Partitions", partitionsTab], ["records", "Records", records], ["configs", "Configs", configsTab]];

export async function topicPage(stage, context) {
  const { names: [name], query, session } = context;
  const chosen = TABS.find(([id]) => id === query.get("tab")) ?? TABS[0];
  const body = h("div");
  show(stage, h("h1", null, name),
    h("nav", { class: "tabs", "aria-label": "Parts of the topic" },
      TABS.map(([id, title]) => h("a", { href: topicHref(name, id), "aria-current": id === chosen[0] ? "page" : null }, title)),
      session.hasData ? link(`#/log/${encodeURIComponent(name)}/0`, "Log") : null, link(`#/replicas/${encodeURIComponent(name)}`, "Replicas")),
    body);
  await chosen[2](body, { ...context, name });
}

async function partitionsTab(place, { name, signal, session }) {
  const [described, offsets] = await Promise.all([get("topics/describe", { arg: name }, signal), get("offsets", { arg: name }, signal)]);
  const [topic] = described.value.topics;
  const ends = new Map(offsets.value.partitions.map((one) => [one.partition, one]));
  const total = offsets.value.partitions.reduce((sum, one) => sum + one.latest - one.earliest, 0);
  show(place, facts([
    ["Partitions", count(topic.partitionCount)], ["Replicas", count(topic.replicationFactor)],
    ["Records", count(total), "offsets from the first to the end"], ["Id", h("span", { class: "mono" }, topic.id ?? "–")],
  ]), panel("Partitions", table([
    { head: "Partition", number: true, cell: (one) => session.hasData ? link(`#/log/${encodeURIComponent(name)}/${one.partition}`, one.partition) : one.partition },
    { head: "Leader", number: true, cell: (one) => one.leader === null ? h("span", { class: "bad" }, "none") : one.leader },
    { head: "Epoch", number: true, cell: (one) => count(one.leaderEpoch) },
    { head: "Replicas", cell: (one) => one.replicas.join(", ") },
    { head: "In sync", cell: (one) => h("span", { class: one.isr.length < one.replicas.length ? "bad" : "" }, one.isr.join(", ")) },
    { head: "First offset", number: true, cell: (one) => count(ends.get(one.partition)?.earliest) },
    { head: "End offset", number: true, cell: (one) => count(ends.get(one.partition)?.latest) },
  ], topic.partitions, { caption: "Partitions" }), command(described.command)),
  session.mayWrite ? [changes(name, topic.partitionCount, () => partitionsTab(place, { name, signal, session })), dangers(name)] : null);
}

// More partitions, and the deletion of old records.
function changes(name, partitionCount, done) {
  const total = h("input", { type: "number", min: partitionCount + 1, value: partitionCount + 1 });
  const partition = h("input", { type: "number", min: 0, max: partitionCount - 1, placeholder: "all" });
  const before = h("input", { required: true, placeholder: "offset" });
  const result = h("div", { "aria-live": "polite" });
  const act = (path, parameters, sentence) => async (event) => {
    event.preventDefault();
    try {
      const { command: text } = await post(path, parameters());
      notice(sentence(), text);
      await done();
    } catch (error) {
      show(result, failure(error));
    }
  };
  return panel("Change this topic",
    h("form", { class: "row", onsubmit: act("topics/alter", () => ({ arg: name, partitions: total.value }), () => `The topic ${name} has ${total.value} partitions.`) }, field("Partitions in total", total), h("button", null, "Add partitions")),
    h("form", { class: "row", onsubmit: act("topics/trim", () => ({ arg: name, before: before.value, partition: partition.value, yes: true }), () => `The records before ${before.value} are deleted.`) },
      field("Delete records before", before), field("of partition", partition), h("button", null, "Trim")), result);
}

function dangers(name) {
  const typed = h("input", { "aria-label": "Name of the topic", placeholder: name });
  const result = h("div");
  const remove = async () => {
    if (typed.value !== name) return show(result, failure(new Error(`type ${name} to delete it`)));
    try {
      const { command: text } = await post("topics/delete", { arg: name });
      notice(`The topic ${name} is deleted.`, text);
      location.hash = "#/topics";
    } catch (error) {
      show(result, failure(error));
    }
  };
  return panel("Delete this topic", h("p", null, "All its records are deleted."), typed, " ", h("button", { type: "button", onclick: remove }, "Delete"), result);
}

async function configsTab(place, { name, signal, session }) {
  const { value, command: text } = await get("configs/describe", { topic: name, all: true, explain: true }, signal);
  const isOwn = (one) => one.source === "TOPIC_CONFIG" || one.source === "DYNAMIC_TOPIC_CONFIG";
  const rank = (one) => (isOwn(one) ? 0 : one.source === "DEFAULT_CONFIG" ? 2 : 1);
  const configs = [...value.configs].sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
  const change = (one) => {
    const wanted = h("input", { value: one.value ?? "" });
    const refusal = h("div", { "aria-live": "polite" });
    const save = async (event) => {
      event.preventDefault();
      try {
        const { command: text } = wanted.value === "" ? await post("configs/unset", { topic: name, arg: one.name }) : await post("configs/set", { topic: name, arg: `${one.name}=${wanted.value}` });
        shown.close();
        notice(`${one.name} of ${name} is changed.`, text);
        await configsTab(place, { name, signal, session });
      } catch (error) {
        show(refusal, failure(error));
      }
    };
    const shown = dialog(one.name, h("p", { class: "quiet" }, one.documentation ?? ""), h("form", { onsubmit: save }, field("Value (empty: the default)", wanted), refusal,
      h("p", null, h("button", { class: "main" }, "Save"), " ", h("button", { type: "button", onclick: () => shown.close() }, "Cancel"))));
  };
  show(place, panel("Configs", table([
    { head: "Config", cell: (one) => h("div", { class: "setting" }, h("span", { class: isOwn(one) ? "good" : "" }, one.name), one.documentation ? h("p", { class: "quiet" }, one.documentation) : null), sort: (one) => one.name },
    { head: "Value", cell: (one) => (one.sensitive ? h("span", { class: "quiet" }, "hidden") : h("code", null, one.value ?? "–")) },
    { head: "From", cell: (one) => SOURCES[one.source] ?? one.source },
    session.mayWrite ? { head: "Change", cell: (one) => h("button", { type: "button", class: "small", "aria-label": `Change ${one.name}`, onclick: () => change(one) }, "change") } : null,
  ].filter(Boolean), configs, { caption: "Configs" }), command(text)));
}

const SOURCES = {
  TOPIC_CONFIG: "this topic", DYNAMIC_TOPIC_CONFIG: "this topic", DYNAMIC_BROKER_CONFIG: "the broker, changed at run time",
  DYNAMIC_DEFAULT_BROKER_CONFIG: "all brokers, changed at run time", STATIC_BROKER_CONFIG: "the broker's settings", DEFAULT_CONFIG: "default",
};
