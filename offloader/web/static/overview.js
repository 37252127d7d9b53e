// All topics: out of /api/topics, every two seconds.
import {
  ago, ahead, ask, badge, byId, commitLine, count, distinct, duration, element, errorLine, live, moment, plural, rate,
  replaceAll, setText, showAge, showFeed, showTiles, size, synchronise, topicLink,
} from "./common.js";

const STEP = 200; // rows drawn at first, and more on demand
const SECONDS = 2;
const FEED = 8;

const severity = (row) => (row.failures ? 2 : row.notes.length ? 1 : 0);
const least = -Infinity;
const COLUMNS = [
  { id: "topic", title: "Topic", by: (row) => row.topic, ascending: true },
  { id: "state", title: "State", by: (row) => row.share ?? least, text: (row) => badge(row)[0] },
  { id: "lag", title: "Lag", number: true, by: (row) => row.lag.seconds ?? least, text: (row) => duration(row.lag.seconds) },
  { id: "as-of", title: "As of", number: true, by: (row) => row.observed_at ?? least, age: (row) => row.observed_at },
  { id: "ledgers", title: "Ledgers", number: true, by: (row) => row.lag.ledgers ?? least, text: (row) => count(row.lag.ledgers) },
  { id: "waiting", title: "Waiting", number: true, by: (row) => row.lag.bytes ?? least, text: (row) => size(row.lag.bytes) },
  { id: "open", title: "Open", number: true, by: (row) => row.open_bytes ?? least, text: (row) => size(row.open_bytes) },
  { id: "rows", title: "Rows", number: true, by: (row) => row.rows_per_second, text: (row) => rate(row.rows_per_second) },
  { id: "offloaded", title: "Offloaded", number: true, by: (row) => row.bytes_per_second, text: (row) => rate(row.bytes_per_second, "bytes") },
  { id: "published", title: "Published", number: true, by: (row) => row.published_bytes_per_second ?? least, text: (row) => rate(row.published_bytes_per_second, "bytes") },
  { id: "commit", title: "Last commit", number: true, by: (row) => row.last_commit?.at ?? least, text: (row, now) => (row.last_commit ? ago(row.last_commit.at, now) : "–"), hint: (row) => (row.last_commit ? moment(row.last_commit.at) : "none since the offloader started") },
  { id: "next", title: "Next turn", number: true, by: (row) => row.next_at ?? least, text: (row, now) => (row.state === "running" ? "running" : ahead(row.next_at, now)), ascending: true },
];
const TITLES = {
  lag: "Since the oldest sealed ledger was closed that the table does not have",
  "as-of": "When Pulsar was asked for what lag, ledgers, waiting and open are of",
  ledgers: "Sealed ledgers that the table does not have",
  waiting: "Stored bytes of these ledgers",
  open: "Bytes in open ledgers, which are not offloaded yet",
};

let data = null;
let shown = STEP;
let order = { id: "problems", ascending: false };
const rows = new Map();

function sorted(topics) {
  const column = COLUMNS.find((one) => one.id === order.id);
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const name = (a, b) => compare(a.topic, b.topic);
  const lag = (a, b) => compare(b.lag.seconds ?? -1, a.lag.seconds ?? -1);
  if (!column) {
    return topics.sort((a, b) => severity(b) - severity(a) || lag(a, b) || name(a, b));
  }
  const sign = order.ascending ? 1 : -1;
  return topics.sort((a, b) => sign * compare(column.by(a), column.by(b)) || name(a, b));
}

function chosen() {
  const text = byId("filter").value.trim().toLowerCase();
  const only = byId("problems").checked;
  return sorted(data.topics.filter(
    (row) => (!text || row.topic.toLowerCase().includes(text)) && (!only || severity(row)),
  ));
}

function makeRow(topic) {
  const cells = COLUMNS.map((column) => element(
    "td", { role: "cell", class: column.number ? "number" : null, "data-label": column.title },
  ));
  const problem = element("p", { class: "problem" });
  const name = element("a", { href: topicLink(topic) });
  const cut = topic.split("/", 2).join("/").length + 1;
  name.append(element("span", { class: "quiet" }, topic.slice(0, cut)), topic.slice(cut));
  cells[0].append(name, problem);
  const badge = element("span", { class: "badge" });
  cells[1].append(badge);
  return { row: element("tr", { role: "row", "data-topic": topic }, ...cells), cells, problem, badge };
}

function showRow(row, now) {
  const made = rows.get(row.topic) ?? makeRow(row.topic);
  rows.set(row.topic, made);
  COLUMNS.forEach((column, number) => {
    if (column.age) {
      showAge(made.cells[number], column.age(row), "", "–");
    } else if (number > 1) {
      const text = column.text(row, now);
      setText(made.cells[number], text);
      made.cells[number].classList.toggle("quiet", /^(–|0( |\/|$))/.test(text));
    }
    if (column.hint) made.cells[number].title = column.hint(row);
  });
  const [word, colour] = badge(row);
  setText(made.badge, word);
  made.badge.className = colour;
  made.badge.title = row.share === null ? "" : `${Math.round(row.share * 100)} % of its limit`;
  const error = row.last_error
    ? `${row.last_error.error} – ${plural(row.failures, "failure")} in a row, next try ${ahead(row.next_at, now)}`
    : row.notes.join("; ");
  setText(made.problem, error);
  made.problem.className = row.last_error ? "problem bad" : "problem warn";
  made.problem.hidden = !error;
  return made.row;
}

function show() {
  if (!data) return;
  const now = data.at;
  synchronise(now);
  const all = chosen();
  const wanted = all.slice(0, shown).map((row) => showRow(row, now));
  const body = byId("rows");
  // Rows that stay where they are are not touched: focus and selection stay with them.
  const there = [...body.children];
  if (wanted.length !== there.length || wanted.some((row, number) => row !== there[number])) {
    const focused = document.activeElement;
    replaceAll(body, wanted);
    if (body.contains(focused)) focused.focus({ preventScroll: true });
  }
  const left = all.length - wanted.length;
  byId("more").hidden = left <= 0;
  setText(byId("more"), `Show ${plural(Math.min(left, STEP), "more topic", "more topics")} of ${count(left)}`);
  const none = byId("none");
  none.hidden = all.length > 0;
  setText(none, data.topics.length ? "No topic matches the filter." : data.state === "starting" ? "The first round is running." : "No topics: offload.topics finds none.");
  for (const head of byId("columns").children) {
    const mine = head.dataset.column === order.id;
    head.setAttribute("aria-sort", mine ? (order.ascending ? "ascending" : "descending") : "none");
  }
  byId("sort").value = order.id;
}

function showTotals() {
  const all = data.totals;
  const hour = duration(Math.min(data.window_seconds, Math.max(60, data.at - data.started_at)));
  showTiles(byId("totals"), [
    ["Topics", count(all.topics), all.failing || all.warned ? `${all.failing} failing, ${all.warned} with warnings` : all.running ? `${all.running} running` : "all fine", all.failing > 0],
    ["Largest lag", duration(all.lag.seconds), "since a ledger was sealed"],
    ["Waiting", size(all.lag.bytes), `in ${plural(all.lag.ledgers, "sealed ledger")}`],
    ["Open", size(all.open_bytes), "in open ledgers"],
    ["Offloaded", rate(all.bytes_per_second, "bytes"), `${rate(all.rows_per_second)} rows`.replace("/s rows", " rows/s")],
    ["Published", rate(all.published_bytes_per_second, "bytes"), all.published_bytes_per_second === null ? "brokers do not say" : "as brokers count"],
  ]);
  setText(byId("about"), `pulsar-lake ${data.version}, since ${moment(data.started_at)}. Throughput is an average over ${hour}.`);
}

function sortBy(id) {
  const column = COLUMNS.find((one) => one.id === id);
  const same = order.id === id;
  order = { id, ascending: same ? !order.ascending : Boolean(column?.ascending) };
  show();
}

function build() {
  replaceAll(byId("columns"), COLUMNS.map((column) => {
    const button = element("button", { type: "button", title: TITLES[column.id] }, column.title);
    button.addEventListener("click", () => sortBy(column.id));
    return element("th", { role: "columnheader", scope: "col", "data-column": column.id, class: column.number ? "number" : null }, button);
  }));
  const choices = [{ id: "problems", title: "Problems first" }, ...COLUMNS];
  replaceAll(byId("sort"), choices.map((one) => element("option", { value: one.id }, one.title)));
  byId("sort").addEventListener("change", (event) => {
    order = { id: event.target.value, ascending: Boolean(COLUMNS.find((one) => one.id === event.target.value)?.ascending) };
    show();
  });
  byId("filter").addEventListener("input", () => { shown = STEP; show(); });
  byId("problems").addEventListener("change", () => { shown = STEP; show(); });
  byId("more").addEventListener("click", () => { shown += STEP; show(); });
}

build();
live(async () => {
  const [topics, commits, errors] = await Promise.all([ask("api/topics"), ask("api/commits"), ask("api/errors")]);
  data = topics;
  const names = new Set(topics.topics.map((row) => row.topic));
  for (const gone of [...rows.keys()].filter((topic) => !names.has(topic))) rows.delete(gone);
  showTotals();
  show();
  showFeed(byId("commits"), commits.commits.slice(0, FEED).map((one) => commitLine(one, topics.at, true)), "None since the offloader started.");
  showFeed(byId("errors"), distinct(errors.errors).slice(0, FEED).map((one) => errorLine(one, topics.at, names.has(one.what))), "None since the offloader started.");
  return topics.state === "serving" ? "live" : topics.state;
}, SECONDS);
