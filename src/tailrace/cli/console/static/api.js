// Requests to the console. Each answer of a command comes with the command itself.

export class Failure extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

function address(path, parameters) {
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

// Calls `take` with each item of a command that does not end, until `signal` aborts.
export function live(path, parameters, signal, take, fail) {
  const source = new EventSource(address(`live/${path}`, parameters));
  const stop = (message) => {
    source.close();
    if (message && fail) fail(new Failure(message));
  };
  source.onmessage = (event) => {
    const item = JSON.parse(event.data);
    if (item.error) stop(item.error.message);
    else take(item);
  };
  source.addEventListener("end", () => stop());
  source.addEventListener("refused", (event) => stop(JSON.parse(event.data).message));
  source.onerror = () => { if (source.readyState === EventSource.CLOSED) stop("the connection to the console was lost"); };
  signal.addEventListener("abort", () => source.close());
}
