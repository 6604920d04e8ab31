// Requests to this server. A refusal becomes a Refused with the server's own words.

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `the server answered ${status}`);
    this.status = status;
    this.title = problem.title || "Not possible";
    this.trace = problem.trace_id;
    this.errors = problem.errors ?? [];
  }
}

let signedOut = () => {};

/** Calls `tell` whenever the server says that nobody is signed in. */
export function onSignedOut(tell) {
  signedOut = tell;
}

export const get = (path, query = {}) => send("GET", path + queryString(query));
export const post = (path, body = {}) => send("POST", path, body);
export const remove = (path) => send("DELETE", path);

/** `?a=1&b=2` of everything that has a value. */
export function queryString(query) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

async function send(method, path, body) {
  const headers = { "X-Pipeline": "1", Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Refused(0, { title: "No connection", detail: "the server does not answer; the page tries again" });
  }
  if (answer.status === 204) return null;
  const found = await answer.json().catch(() => ({}));
  if (answer.ok) return found;
  const refused = new Refused(answer.status, found);
  if (answer.status === 401 && path !== "/v1/session") signedOut();
  throw refused;
}
