// Requests to the console. Each answer of a command comes with the command itself.

export class Failure extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export function address(path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters ?? {})) {
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== false && one !== "") query.append(name, one === true ? "" : one);
  }
  return query.size ? `/api/${path}?${query}` : `/api/${path}`;
}

async function ask(path, parameters, options) {
  const response = await fetch(address(path, parameters), options);
  const command = decodeURIComponent(response.headers.get("tailrace-command") ?? "");
  if (!response.ok) {
    const answer = await response.json().catch(() => null);
    throw new Failure(answer?.error?.message ?? `the console responded with status ${response.status}`, response.status);
  }
  const text = await response.text();
  options.signal?.throwIfAborted(); // a body that has arrived already is delivered even after an abort
  if (response.headers.get("tailrace-exit-status") > 0 && text.startsWith('{"error"')) {
    const { error } = JSON.parse(text);
    throw Object.assign(new Failure(error.message, response.status), { command, code: error.code });
  }
  return { text, command };
}

export async function get(path, parameters, signal) {
  const { text, command } = await ask(path, parameters, { signal });
  return { value: JSON.parse(text), command };
}

export async function lines(path, parameters, signal) {
  const { text, command } = await ask(path, parameters, { signal });
  return { value: text.split("\n").filter(Boolean).map((line) => JSON.parse(line)), command };
}

export async function post(path, parameters, body = "") {
  const { text, command } = await ask(path, parameters, { method: "POST", headers: { "x-tailrace-console": "1" }, body });
  return { value: text ? JSON.parse(text) : null, command };
}

// Saves the file that a command prints. A failure is an error, as for every other command.
export async function save(path, parameters, name) {
  const response = await fetch(address(path, parameters));
  const kind = response.headers.get("content-type") ?? "";
  if (!response.ok || kind.startsWith("application/json")) {
    const answer = await response.json().catch(() => null);
    throw new Failure(answer?.error?.message ?? `the console responded with status ${response.status}`, response.status);
  }
  download(await response.blob(), name);
}

export function download(blob, name) {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(blob);
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 60000); // the browser may read it after the click
}

// Calls `read` now and then again, always `ms` after its last end, until `signal` aborts. A hidden page does not read.
export async function repeat(ms, signal, read, fail) {
  await read();
  const again = async () => {
    if (!document.hidden) await read().catch((error) => { if (!signal.aborted) fail(error); });
    timer = setTimeout(again, ms);
    if (signal.aborted) clearTimeout(timer);
  };
  let timer = setTimeout(again, ms);
  signal.addEventListener("abort", () => clearTimeout(timer));
}

// Calls `take` with each item of a command that does not end, until `signal` aborts. With `pauses` a hidden page
// disconnects, since a browser has few connections for all its tabs, and connects again when it is shown. Without
// `pauses` it never connects again: a new connection starts the command from its beginning, so items would come twice.
export function live(path, parameters, signal, take, fail, { pauses = true } = {}) {
  let source = null;
  const stop = (message) => {
    source?.close();
    document.removeEventListener("visibilitychange", turn);
    if (message && fail && !signal.aborted) fail(new Failure(message));
  };
  const open = () => {
    source = new EventSource(address(`live/${path}`, parameters));
    source.onmessage = (event) => {
      if (signal.aborted) return;
      const item = JSON.parse(event.data);
      if (item.error) stop(item.error.message);
      else take(item);
    };
    source.addEventListener("end", () => stop());
    source.addEventListener("refused", (event) => stop(JSON.parse(event.data).message));
    source.onerror = () => { if (!pauses || source.readyState === EventSource.CLOSED) stop("the connection to the console was lost"); };
  };
  const turn = () => {
    if (document.hidden) source.close();
    else if (source.readyState === EventSource.CLOSED) open();
  };
  open();
  if (pauses) document.addEventListener("visibilitychange", turn);
  signal.addEventListener("abort", () => stop());
}
