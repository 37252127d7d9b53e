// One topic: what is known in memory every two seconds, its segments and commits every five.
import {
  AnswerError, ago, ahead, ask, badge, byId, clockTime, commitLine, count, distinct, duration, element, errorLine, live, moment,
  path, plural, rate, replaceAll, setText, showAge, showFeed, showTiles, size, synchronise,
} from "./common.js";
import { COLOURS, RANGES, Timeline, colourOf, legend } from "./timeline.js";

const name = new URLSearchParams(location.search).get("name") ?? "";
const api = `api/topics/${path(name)}`;
const SECONDS = 2;
const SLOW = 5; // seconds between two questions that Pulsar and the storage have to answer
const LONG = 65;
const TOKEN = "pulsar-lake-token";

document.title = `${name} – pulsar-lake`;
const cut = name.split("/", 2).join("/").length + 1;
byId("name").append(element("span", { class: "quiet" }, name.slice(0, cut)), name.slice(cut));
legend();

// -- the timeline -----------------------------------------------------------------------------

const timeline = new Timeline(byId("timeline"), byId("tip"));

function chooseRange(seconds, zoom = null) {
  timeline.show({ range: seconds, zoom });
  for (const one of byId("ranges").children) {
    one.setAttribute("aria-pressed", String(!zoom && one.dataset.seconds === String(seconds)));
  }
}

replaceAll(byId("ranges"), RANGES.map(([text, seconds]) => {
  const made = element("button", { type: "button", "data-seconds": String(seconds), "aria-pressed": String(seconds === null) }, text);
  made.addEventListener("click", () => chooseRange(seconds));
  return made;
}));
byId("timeline").addEventListener("zoom", (event) => chooseRange(null, event.detail));
byId("equal").addEventListener("change", (event) => timeline.show({ equal: event.target.checked }));

function showSegments(found) {
  timeline.update(found.segments, found.at);
  const parts = COLOURS.map((kind) => {
    const some = found.segments.filter((one) => colourOf(one) === kind);
    const ledgers = some.reduce((total, one) => total + (one.ledgers ?? 1), 0);
    return ledgers ? `${count(ledgers)} ${kind}` : "";
  }).filter(Boolean);
  const version = found.version === null ? "no table yet" : `table version ${found.version}`;
  setText(byId("timeline-note"), parts.length ? `${parts.join(", ")}; ${version}, as of ${clockTime(found.at)}. Arrow keys move from block to block.` : `No segments; ${version}.`);
}

// -- the rest ---------------------------------------------------------------------------------

function showFacts(row) {
  const now = row.at;
  synchronise(now);
  showAge(byId("as-of"), row.observed_at);
  showTiles(byId("facts"), [
    ["Lag", duration(row.lag.seconds), "since a ledger was sealed"],
    ["Waiting", size(row.lag.bytes), row.lag.ledgers === null ? "not observed yet" : `in ${plural(row.lag.ledgers, "sealed ledger")}`],
    ["Open", size(row.open_bytes), "in open ledgers"],
    ["Offloaded", rate(row.bytes_per_second, "bytes"), `${rate(row.rows_per_second)} rows`.replace("/s rows", " rows/s")],
    ["Published", rate(row.published_bytes_per_second, "bytes"), ""],
    ...(row.iceberg ? [["Iceberg", row.iceberg.versions ? duration(row.iceberg.seconds) : row.iceberg.versions === null ? "none yet" : "up to date", row.iceberg.version === null ? "" : `${row.iceberg.versions ? `${plural(row.iceberg.versions, "version")} behind, ` : ""}shows version ${row.iceberg.version}`]] : []),
    ["Next turn", row.state === "running" ? "running" : ahead(row.next_at, now), row.share === null ? "" : `at ${Math.round(row.share * 100)} % of a limit`],
  ]);
  const [word, colour] = badge(row);
  showFeed(byId("state"), [element("span", { class: colour }, word)], "");
}

function showProblems(row) {
  // The last failure is among the errors, with its times; notes are warnings that the last turn saw.
  const warnings = [...new Set([...row.warnings, ...row.notes])];
  const lines = [
    ...row.errors.map((text) => element("li", { class: "bad" }, text)),
    ...warnings.map((text) => element("li", { class: "warn" }, text)),
  ];
  byId("problems").hidden = !lines.length;
  showFeed(byId("problem-list"), lines, "");
}

function showPartitions(row) {
  const cell = (label, text) => element("td", { role: "cell", class: "number", "data-label": label }, text);
  const lines = row.partitions.map((one) => element(
    "tr", { role: "row" },
    cell("Partition", one.partition < 0 ? "none" : String(one.partition)),
    cell("Watermark", one.watermark < 0 ? "–" : String(one.watermark)),
    cell("Hold", one.hold ?? "none"),
    cell("Lag", duration(one.lag_seconds)),
    cell("Ledgers", count(one.lag_ledgers)),
    cell("Waiting", size(one.lag_bytes)),
  ));
  replaceAll(byId("partitions"), lines);
}

// What this process knows of its own commits is more than the log has.
const own = new Map();
const merge = (one) => ({ ...one, ...own.get(one.version) });

let timer = null;

async function slow() {
  clearTimeout(timer);
  try {
    const [segments, { commits }] = await Promise.all([ask(`${api}/segments`, {}, LONG), ask(`${api}/commits`, {}, LONG)]);
    showSegments(segments);
    showFeed(byId("commits"), commits.slice(0, 20).map((one) => commitLine(merge(one), segments.at, false)), "The table has no commit yet.");
    byId("timeline-note").classList.remove("bad");
  } catch (error) {
    setText(byId("timeline-note"), `Not up to date: ${error.message}`);
    byId("timeline-note").classList.add("bad");
  }
  clearTimeout(timer);
  timer = setTimeout(slow, (document.hidden ? 10 : 1) * SLOW * 1000);
}
slow();

live(async () => {
  const row = await ask(api);
  for (const one of row.recent_commits) own.set(one.version, one);
  showFacts(row);
  showProblems(row);
  showPartitions(row);
  const now = row.at;
  showFeed(byId("errors"), distinct(row.recent_errors).slice(0, 20).map((one) => errorLine({ ...one, what: "" }, now, false)), "None since the offloader started.");
  return "live";
}, SECONDS);

// -- offload now ------------------------------------------------------------------------------

function say(text, bad = false) {
  byId("request").hidden = false;
  setText(byId("request-text"), text);
  byId("request").classList.toggle("bad", bad);
}

function tasks(done, total) {
  const bar = byId("request-tasks");
  bar.hidden = !total;
  bar.max = total || 1;
  bar.value = done;
}

async function offload(token) {
  let request = await ask(`${api}/offload`, { method: "POST", headers: { authorization: `Bearer ${token}` } });
  byId("offload").disabled = true;
  try {
    while (request.state === "waiting" || request.state === "running") {
      say(request.tasks.total ? `Converting: ${request.tasks.done} of ${plural(request.tasks.total, "task")}` : "Waiting for its turn …");
      tasks(request.tasks.done, request.tasks.total);
      request = await ask(`api/requests/${encodeURIComponent(request.id)}?wait=1`);
    }
    tasks(0, 0);
    const rows = request.commits.reduce((total, one) => total + one.rows, 0);
    const versions = request.commits.map((one) => one.version).join(", ");
    if (request.state === "failed") say(`Failed: ${request.error}`, true);
    else if (request.commits.length) say(`Done at ${moment(Date.now() / 1000)}: ${plural(rows, "row")} committed as version ${versions}.`);
    else say("Done: no sealed ledger was waiting, the table has all of them.");
    slow();
  } catch (error) {
    tasks(0, 0);
    say(`Lost the connection: ${error.message}`, true);
  } finally {
    byId("offload").disabled = false;
  }
}

function askForToken(text = "") {
  setText(byId("ask-error"), text);
  if (!byId("ask").open) byId("ask").showModal();
  byId("token").focus();
}

async function tryToken(token) {
  try {
    await offload(token);
  } catch (error) {
    sessionStorage.removeItem(TOKEN);
    if (error instanceof AnswerError && (error.status === 401 || error.status === 403)) askForToken(error.message);
    else say(`Failed: ${error.message}`, true);
  }
}

byId("offload").addEventListener("click", () => {
  const kept = sessionStorage.getItem(TOKEN);
  if (kept) tryToken(kept);
  else askForToken();
});
byId("ask-cancel").addEventListener("click", () => byId("ask").close());
byId("ask-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = byId("token").value.trim();
  byId("token").value = "";
  sessionStorage.setItem(TOKEN, token);
  byId("ask").close();
  tryToken(token);
});
