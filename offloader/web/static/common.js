// What both pages share: text, numbers, and polling the server.
// Names and errors come from others: they only ever become text nodes.

const NUMBER = new Intl.NumberFormat("en");
const CLOCK = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit",
  second: "2-digit", hour12: false,
});
const TIME = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false,
});

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter((one) => one !== null && one !== undefined));
  return made;
}

export const byId = (id) => document.getElementById(id);

// Only where it differs: a screen reader hears of changes, and selections stay.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function replaceAll(parent, children) {
  parent.replaceChildren(...children);
}

export function count(value) {
  return value === null || value === undefined ? "–" : NUMBER.format(value);
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  let value = bytes;
  for (const unit of ["B", "KiB", "MiB", "GiB", "TiB"]) {
    if (Math.abs(value) < 1023.95 || unit === "TiB") {
      return `${unit === "B" ? Math.round(value) : value.toFixed(1)} ${unit}`;
    }
    value /= 1024;
  }
  return "";
}

export function rate(value, what) {
  if (value === null || value === undefined) return "–";
  if (what === "bytes") return `${size(value)}/s`;
  return value >= 10 || value === 0 ? `${NUMBER.format(Math.round(value))}/s` : `${value.toFixed(1)}/s`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

const shortly = (seconds) => duration(seconds).replace(/^(\d+ (?:min|h|d)) .*/, "$1");

export const ago = (at, now) => (at === null || at === undefined ? "–" : `${shortly(now - at)} ago`);

export const ahead = (at, now) => (at === null || at === undefined ? "–" : at <= now ? "now" : `in ${shortly(at - now)}`);

export function moment(at) {
  if (at === null || at === undefined) return "–";
  const date = new Date(at * 1000);
  return Number.isNaN(date.getTime()) ? `${at} s` : CLOCK.format(date);
}

export const clockTime = (at) => TIME.format(new Date(at * 1000));

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

// The name's three parts; the last may have slashes.
export function path(topic) {
  const [tenant, namespace, ...name] = topic.split("/");
  return [tenant, namespace, name.join("/")].map(encodeURIComponent).join("/");
}

export const topicLink = (topic) => `topic?name=${encodeURIComponent(topic)}`;

export class AnswerError extends Error {
  constructor(status, value) {
    super(value.hint ? `${value.error} (${value.hint})` : value.error);
    this.status = status;
  }
}

export async function ask(url, options = {}, seconds = 15) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(seconds * 1000), ...options });
  let value = null;
  try {
    value = await answer.json();
  } catch {
    throw new AnswerError(answer.status, { error: `no JSON in the answer (${answer.status})` });
  }
  if (!answer.ok) throw new AnswerError(answer.status, value);
  return value;
}

// The server's clock, as of its last answer; ages go on between two answers.
let ahead_of_us = 0;

export const synchronise = (at) => { ahead_of_us = at - Date.now() / 1000; };

// Says how old what is shown is, and keeps saying it.
export function showAge(node, at, before = "as of ", none = "not observed yet") {
  Object.assign(node.dataset, { asOf: at ?? "", before, none });
  tell(node);
}

function tell(node) {
  const { asOf, before, none } = node.dataset;
  const now = Date.now() / 1000 + ahead_of_us;
  setText(node, asOf === "" ? none : `${before}${ago(Math.min(Number(asOf), now), now)}`);
  node.title = asOf === "" ? "" : moment(Number(asOf));
}

setInterval(() => document.querySelectorAll("[data-as-of]").forEach(tell), 1000);

// Calls `step` every `seconds`, less often while nobody looks. Says in #live how it goes: an
// answer that is an error is an answer, silence is not.
export function live(step, seconds) {
  const place = byId("live");
  let heard = null;
  let timer = null;
  async function turn() {
    timer = null;
    try {
      const text = await step();
      heard = Date.now() / 1000;
      setText(place, text);
      place.classList.remove("dead");
      document.body.classList.remove("stale");
    } catch (error) {
      if (error instanceof AnswerError) {
        heard = Date.now() / 1000;
        setText(place, error.message);
      } else {
        setText(place, heard === null ? "no answer yet" : `no answer since ${clockTime(heard)}`);
        document.body.classList.add("stale");
      }
      place.classList.add("dead");
    }
    timer = setTimeout(turn, (document.hidden ? 10 : 1) * seconds * 1000);
  }
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && timer !== null) {
      clearTimeout(timer);
      turn();
    }
  });
  turn();
}

export function tile(name, value, more = "", bad = false) {
  return element(
    "div", { class: bad ? "bad" : null },
    element("dt", {}, name),
    element("dd", {}, value, more ? element("small", {}, more) : null),
  );
}

// Tiles are made once, and only their texts change after that.
export function showTiles(list, tiles) {
  const made = tiles.map((one) => tile(...one));
  if (list.children.length !== made.length) {
    replaceAll(list, made);
    return;
  }
  made.forEach((one, number) => {
    if (!list.children[number].isEqualNode(one)) list.children[number].replaceWith(one);
  });
}

// The word and its colour.
export function badge(row) {
  const text = row.state === "running" && row.tasks
    ? `running ${row.tasks.done}/${row.tasks.total}`
    : row.state === "fine" && row.notes.length ? "warning" : row.state;
  return [text, `badge ${text.split(" ")[0]}`];
}

export function commitLine(one, now, withTopic) {
  const files = one.files === undefined ? "" : ` in ${plural(one.files, "file")}, ${size(one.bytes)}`;
  const rescued = one.rescued ? `, ${count(one.rescued)} rescued` : "";
  const from = one.read_from?.length ? `read from ${one.read_from.join(", ")}` : "";
  const more = one.reason ?? from;
  return element(
    "li", {},
    element("time", { datetime: new Date(one.at * 1000).toISOString(), title: moment(one.at) }, ago(one.at, now)),
    element(
      "div", {},
      withTopic ? element("a", { href: topicLink(one.topic) }, one.topic) : element("b", {}, `version ${one.version}`),
      element("p", {}, `${plural(one.rows, "row")} of ${plural(one.ledgers, "ledger")}${files}${rescued}`),
      element("p", { class: "quiet" }, one.seconds === undefined ? more : `${more}; ${duration(one.seconds)}`),
    ),
  );
}

export function errorLine(one, now, linked) {
  return element(
    "li", {},
    element("time", { datetime: new Date(one.at * 1000).toISOString(), title: moment(one.at) }, ago(one.at, now)),
    element(
      "div", {},
      linked ? element("a", { href: topicLink(one.what) }, one.what) : one.what ? element("b", {}, one.what) : null,
      element("p", { class: "bad" }, one.error),
      one.times > 1 ? element("p", { class: "quiet" }, `${one.times} times in a row`) : null,
    ),
  );
}

// The newest of each failure: one that is tried again and again is one line.
export function distinct(errors) {
  const seen = new Set();
  return errors.filter((one) => {
    const key = `${one.what}\n${one.error}`;
    return !seen.has(key) && seen.add(key);
  });
}

// A feed is drawn anew only where something came or a minute has passed for it.
export function showFeed(list, lines, empty) {
  const made = lines.length ? lines : [element("li", { class: "quiet" }, empty)];
  const same = made.length === list.children.length
    && made.every((one, number) => one.isEqualNode(list.children[number]));
  if (!same) replaceAll(list, made);
}
