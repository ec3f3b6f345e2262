// The frame of the page: which page is shown, who is logged in, light or dark.

import { get, post } from "./api.js";
import { failure, field, h, show } from "./dom.js";
import { overview } from "./overview.js";
import { topicPage, topicsPage } from "./topics.js";
import { groupPage, groupsPage } from "./groups.js";
import { logPage } from "./log.js";
import { securityPage, transactionsPage } from "./access.js";
import { waitingPage } from "./waiting.js";
import { replicasPage } from "./replicas.js";
import { sparkPage } from "./spark.js";

const PAGES = [
  ["Overview", "#/", overview],
  ["Topics", "#/topics", topicsPage, topicPage],
  ["Groups", "#/groups", groupsPage, groupPage],
  ["Log", "#/log", logPage, logPage],
  ["Replicas", "#/replicas", replicasPage, replicasPage],
  ["Waiting", "#/waiting", waitingPage],
  ["Transactions", "#/transactions", transactionsPage, transactionsPage],
  ["Spark", "#/spark", sparkPage],
  ["Security", "#/security", securityPage],
];
const main = document.querySelector("main");
let left = new AbortController();
let noticedOn = ""; // the noun of the page that a notice belongs to
export let session = {};

// #/topics/NAME?tab=records → {noun: "topics", names: ["NAME"], query}
function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [noun, ...names] = path.split("/").filter(Boolean).map(decodeURIComponent);
  return { noun: noun ?? "", names, query: new URLSearchParams(query ?? "") };
}

async function draw() {
  left.abort();
  left = new AbortController();
  const { signal } = left;
  const { noun, names, query } = place();
  const found = PAGES.find(([, href]) => href === `#/${noun}`) ?? PAGES[0];
  for (const one of document.querySelectorAll("nav a")) {
    if (one.getAttribute("href") === found[1]) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  document.title = [names[0], found[0], "Tailrace"].filter(Boolean).join(" · ");
  if (session.hasLogin && !session.user) return login();
  const page = names.length ? found[3] ?? found[2] : found[2];
  const stage = h("div");
  show(main, stage);
  if (noun !== noticedOn) document.querySelector("#notices").replaceChildren();
  noticedOn = noun;
  try {
    await page(stage, { names, query, signal, session });
  } catch (error) {
    if (signal.aborted) return;
    if (error.status === 401) return login();
    show(stage, h("h1", null, found[0]), failure(error));
  }
}

function login(error) {
  const user = h("input", { name: "user", autocomplete: "username", required: true });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password", required: true });
  const enter = async (event) => {
    event.preventDefault();
    try {
      await post("login", {}, JSON.stringify({ user: user.value, password: password.value }));
      await begin();
    } catch (failed) {
      login(failed);
    }
  };
  show(main, h("h1", null, "Log in"), error ? failure(error) : null,
    h("form", { class: "row panel", onsubmit: enter }, field("User", user), field("Password", password), h("button", { class: "main" }, "Log in")),
    h("p", { class: "quiet" }, "A user of the cluster. The page shows what its access control lists allow you to see."));
  user.focus();
}

function theme() {
  const order = ["", "light", "dark"];
  const now = localStorage.getItem("theme") ?? "";
  document.documentElement.dataset.theme = now;
  const next = order[(order.indexOf(now) + 1) % 3];
  return h("button", { type: "button", class: "small", title: "light, dark, or as the system has it", onclick: () => {
    localStorage.setItem("theme", next);
    drawFrame();
  } }, now || "auto");
}

function drawFrame() {
  show(document.querySelector("nav"), PAGES.map(([name, href]) => h("a", { href }, name)));
  const leave = async () => {
    await post("logout", {});
    location.reload();
  };
  show(document.querySelector(".session"),
    session.user ? [h("span", null, session.user), h("button", { type: "button", class: "small", onclick: leave }, "log out")] : null,
    h("span", { class: "badge" }, session.mayWrite ? "changes allowed" : "read-only"), theme());
}

// Digits open the pages (0 the tenth), / goes to the first field of a page.
function shortcut(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const page = /^\d$/.test(event.key) ? PAGES[(Number(event.key) + 9) % 10] : null;
  if (page) location.hash = page[1];
  if (event.key === "/") {
    const first = main.querySelector("input, select");
    if (first) {
      event.preventDefault();
      first.focus();
    }
  }
}

async function begin() {
  session = (await get("session")).value;
  drawFrame();
  await draw();
}

addEventListener("hashchange", draw);
addEventListener("keydown", shortcut);
begin().catch((error) => show(main, failure(error)));
