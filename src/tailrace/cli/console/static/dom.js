// Elements, tables and texts. Every text from the cluster becomes a text node: nothing is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

export const show = (place, ...children) => place.replaceChildren(...children.flat(Infinity).filter(Boolean));

const NUMBER = new Intl.NumberFormat("en");
export const count = (value) => (value === null || value === undefined ? "–" : NUMBER.format(value));
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (Math.abs(value) >= 1023.95 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return unit ? `${value.toFixed(1)} ${units[unit]}` : `${value} B`;
}

export function time(ms) {
  if (ms === null || ms === undefined || ms < 0) return "–";
  const date = new Date(ms);
  return Number.isNaN(date.valueOf()) ? String(ms) : date.toISOString().replace("T", " ").replace("Z", "");
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  const parts = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const texts = [];
  for (const [name, size] of parts) {
    const whole = Math.floor(seconds / size);
    seconds -= whole * size;
    if (whole) texts.push(`${whole} ${name}`);
  }
  return texts.slice(0, 2).join(" ");
}

export const ago = (ms) => (ms === null || ms === undefined ? "–" : `${duration(Math.max(Date.now() - ms, 0) / 1000)} ago`);

// A table. `columns`: [{head, cell(row), number, sort(row)}]. More rows than fit on a screen or two are drawn as they
// scroll into view. Its method `refresh` draws the cells again that have changed: order, place and focus stay.
export function table(columns, rows, { caption, empty = "nothing to show" } = {}) {
  if (!rows.length) return h("p", { class: "quiet" }, empty);
  const body = h("tbody");
  let sorted = rows;
  let sort = (all) => all;
  let drawn = 0;
  const drawRow = (row) => h("tr", null, columns.map((one) => h("td", { class: one.number ? "number" : null }, one.cell(row))));
  const elements = new Map(); // row → its element
  const drawMore = () => {
    const until = Math.min(drawn + 200, sorted.length);
    for (; drawn < until; drawn++) {
      const row = sorted[drawn];
      elements.set(row, drawRow(row));
      body.append(elements.get(row));
    }
    more.hidden = drawn >= sorted.length;
    more.textContent = `${count(drawn)} of ${count(sorted.length)} rows – show more`;
  };
  const more = h("button", { type: "button", onclick: drawMore });
  const sortBy = (column, header) => {
    const falls = header.getAttribute("aria-sort") === "ascending";
    for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", falls ? "descending" : "ascending");
    const key = column.sort;
    const order = (a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0);
    sort = (all) => [...all].sort(falls ? (a, b) => order(b, a) : order);
    sorted = sort(rows);
    drawn = 0;
    elements.clear();
    body.replaceChildren();
    drawMore();
  };
  const heads = columns.map((one) => {
    const header = h("th", { scope: "col", class: one.number ? "number" : null });
    header.append(one.sort ? h("button", { type: "button", class: "small", onclick: () => sortBy(one, header) }, one.head) : one.head);
    return header;
  });
  drawMore();
  if (globalThis.IntersectionObserver) {
    new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting) && !more.hidden) drawMore(); }).observe(more);
  }
  const refresh = () => {
    const focused = body.contains(document.activeElement) ? document.activeElement : null;
    sorted = sort(rows);
    const shown = sorted.slice(0, drawn);
    const kept = new Set(shown);
    for (const [row, element] of elements) {
      if (kept.has(row)) continue;
      element.remove();
      elements.delete(row);
    }
    shown.forEach((row, at) => {
      const fresh = drawRow(row);
      const element = elements.get(row) ?? fresh;
      elements.set(row, element);
      if (element !== fresh) {
        [...fresh.children].forEach((cell, number) => {
          const old = element.children[number];
          if (old.innerHTML !== cell.innerHTML) old.replaceChildren(...cell.childNodes);
        });
      }
      if (body.children[at] !== element) body.insertBefore(element, body.children[at] ?? null);
    });
    if (focused?.isConnected) focused.focus({ preventScroll: true }); // a row that moves loses it
  };
  return Object.assign(h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption ?? "table" },
    h("table", null, h("thead", null, h("tr", null, heads)), body), more), { refresh });
}

export const facts = (pairs) => h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value, more]) =>
  h("div", { class: "fact" }, h("dt", null, name), h("dd", null, value, more ? h("small", null, more) : null))));

export function command(text) {
  if (!text) return null;
  const button = h("button", { type: "button", class: "small", onclick: async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } }, "copy");
  return h("p", { class: "command" }, "the same in a terminal:", h("code", null, text), button);
}

// Says what an action has done, and with which command. It stays until another page is opened.
export const notice = (sentence, text) => document.querySelector("#notices").replaceChildren(
  h("div", { class: "panel notice" }, h("p", { class: "good" }, sentence), command(text)));

export function dialog(title, ...children) {
  const shown = h("dialog", null, h("h2", null, title), children);
  shown.addEventListener("close", () => shown.remove());
  document.body.append(shown);
  shown.showModal();
  return shown;
}

export const panel = (title, ...children) => h("section", { class: "panel" }, h("h2", null, title), children);
export const failure = (error) => h("p", { class: "panel error", role: "alert" }, error.message ?? String(error));
export const link = (href, text) => h("a", { href }, text);
export const field = (name, control) => h("label", null, name, control);

// A line over time with its largest value and its times. `points`: [{time, value}]; a value that is null is a gap.
export function chart(points, label, form, { width = 1200, height = 150 } = {}) {
  const known = points.filter((one) => one.value !== null);
  if (known.length < 2) return h("p", { class: "quiet" }, "There are no two points yet.");
  const [first, last] = [points[0].time, points.at(-1).time];
  const most = Math.max(...known.map((one) => one.value), 1e-9);
  const x = (one) => ((one.time - first) / Math.max(last - first, 1)) * width;
  const y = (one) => height - 20 - (one.value / most) * (height - 40);
  const line = known.map((one) => `${x(one).toFixed(1)},${y(one).toFixed(1)}`).join(" ");
  const clock = (ms) => time(ms).slice(11, 19);
  return h("div", { class: "scroll" }, svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": `${label}: at most ${form(most)}, now ${form(known.at(-1).value)}` },
    svg("line", { class: "axis", x1: 0, x2: width, y1: height - 20, y2: height - 20 }), svg("polyline", { class: "spark", points: line }),
    svg("text", { x: 0, y: 12 }, `${label}, at most ${form(most)}`), svg("text", { x: 0, y: height - 5 }, clock(first)), svg("text", { x: width, y: height - 5, "text-anchor": "end" }, clock(last))));
}

export function spark(points, label, width = 220, height = 40) {
  const most = Math.max(...points, 1e-9);
  const step = width / Math.max(points.length - 1, 1);
  const line = points.map((value, at) => `${(at * step).toFixed(1)},${(height - 3 - (value / most) * (height - 6)).toFixed(1)}`).join(" ");
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
    svg("polyline", { class: "spark", points: line }));
}
