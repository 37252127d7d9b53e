// A topic's segments on a time axis: a line for each partition, a button for each block of it.
//
// A block has the width of its time, and one that can be pointed at in any case: what is narrower
// pushes its neighbours aside. Where there are too many for that, neighbours of one kind are drawn
// as one; choosing it zooms in. A segment without entries is hollow and takes no time. One block is
// in the tab order, and the arrow keys move from there.
import { byId, clockTime, count, duration, element, moment, plural, replaceAll, size } from "./common.js";

const LEAST = 12; // px that a block is to have at least,
const NARROW = 6; // or so many where there are many blocks,
const SHARE = 0.4; // as long as they take no more of the line than this from where time has them
const GAP = 1; // px between neighbours
export const RANGES = [["1 h", 3600], ["6 h", 21600], ["24 h", 86400], ["7 d", 604800], ["30 d", 2592000], ["All", null]];
const TIERS = {
  parquet: "in the table (Parquet)",
  bookkeeper: "on the bookies (BookKeeper)",
  tiered: "in Pulsar's own tiered storage",
  broker: "through the broker",
};
const LEGEND = { ...TIERS, lost: "lost: deleted before it was offloaded" };
const HOLLOW = "hollow: no entries";
export const COLOURS = Object.keys(LEGEND);

// Of its tier; a lost one has no rows that a tier could give, so it has the colour of its state.
export const colourOf = (one) => (one.state === "lost" ? "lost" : one.tier);
const sum = (some, field) => some.reduce((total, one) => total + (one[field] ?? 0), 0);

export class Timeline {
  constructor(place, tip) {
    this.place = place;
    this.tip = tip;
    this.segments = [];
    this.now = 0;
    this.range = null; // seconds back from now; null: all
    this.zoom = null; // [from, to], instead
    this.equal = false;
    this.current = null; // "partition:ledger" of the block in the tab order
    this.groups = new Map(); // button → segments
    this.drawn = "";
    place.addEventListener("keydown", (event) => this.#key(event));
    place.addEventListener("focusin", (event) => this.#focus(event.target));
    place.addEventListener("focusout", () => this.#hide());
    place.addEventListener("pointerover", (event) => this.#over(event.target));
    place.addEventListener("pointerleave", () => this.#hide());
    place.addEventListener("click", (event) => this.#choose(event.target));
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") this.#hide(); });
    new ResizeObserver(() => this.draw()).observe(place);
  }

  update(segments, now) {
    this.segments = segments;
    this.now = now;
    this.draw();
  }

  show(change) {
    Object.assign(this, change);
    this.draw();
  }

  // -- layout --------------------------------------------------------------------------------

  #window() {
    if (this.zoom) return this.zoom;
    if (this.range !== null) return [this.now - this.range, this.now];
    const filled = this.segments.filter((one) => !one.empty);
    if (!filled.length) return [this.now - 60, this.now];
    const to = filled.reduce((most, one) => Math.max(most, one.end), -Infinity);
    return [filled.reduce((least, one) => Math.min(least, one.begin), to - 60), to];
  }

  draw() {
    const width = this.place.clientWidth - 48;
    // Before the first answer there is no time: an axis would begin in 1970.
    if (width <= 0 || !this.now) return;
    const [from, to] = this.#window();
    const partitions = new Map();
    for (const one of this.segments) {
      if (!partitions.has(one.partition)) partitions.set(one.partition, []);
      partitions.get(one.partition).push(one);
    }
    const state = JSON.stringify([width, Math.round(from / Math.max(1, (to - from) / width)), this.equal, this.zoom, this.range, this.segments]);
    if (state === this.drawn) return;
    this.drawn = state;
    const focused = this.groups.has(document.activeElement);
    this.groups = new Map();
    const lines = [...partitions.entries()].sort((a, b) => a[0] - b[0]).map(([partition, some]) => {
      const track = element("div", { class: "track", role: "group", "aria-label": partition < 0 ? "The topic, which has no partitions" : `Partition ${partition}` });
      const all = this.range === null && !this.zoom;
      for (const block of layout(some, [from, to], width, { all, equal: this.equal })) track.append(this.#button(block, width));
      return element("div", { class: "line" }, element("span", { class: "label", "aria-hidden": "true" }, partition < 0 ? "–" : `${partition}`), track);
    });
    replaceAll(this.place, [...lines, this.#axis(from, to, width)]);
    this.#keepCurrent(focused);
  }

  #button({ x0, x1, some }, width) {
    const shape = isEmpty(some) ? " empty" : "";
    const made = element("button", { type: "button", tabindex: "-1", class: `seg ${colour(some)} ${some[0].state}${shape}`, "aria-label": describe(some).join("; "), "data-key": `${some[0].partition}:${some[0].first}` });
    made.style.left = `${(100 * x0) / width}%`;
    made.style.width = `calc(${(100 * (x1 - x0)) / width}% - ${GAP}px)`;
    this.groups.set(made, some);
    return made;
  }

  #axis(from, to, width) {
    const axis = element("div", { class: "axis", "aria-hidden": "true" });
    if (this.equal) {
      axis.append(element("span", { class: "first" }, "oldest"), element("span", { class: "last" }, "newest"));
      return axis;
    }
    const day = to - from > 2 * 86400;
    const ticks = Math.max(1, Math.min(6, Math.floor(width / 150)));
    for (let i = 0; i <= ticks; i += 1) {
      const at = from + ((to - from) * i) / ticks;
      const date = (time) => moment(time).split(",")[0];
      const other = i === 0 && date(at) !== date(this.now); // what is shown may have ended long ago
      const text = day ? date(at) : other ? moment(at) : clockTime(at);
      const made = element("span", { class: i === 0 ? "first" : i === ticks ? "last" : null }, text);
      made.style.left = `${(100 * i) / ticks}%`;
      axis.append(made);
    }
    return axis;
  }

  // -- moving and showing --------------------------------------------------------------------

  #keepCurrent(focused) {
    const all = [...this.groups.keys()];
    if (!all.length) return;
    const [partition, ledger] = (this.current ?? "").split(":").map(Number);
    const has = (one) => one.partition === partition && one.first <= ledger && ledger <= one.last;
    const found = all.find((button) => this.groups.get(button).some(has)) ?? all.at(-1);
    found.tabIndex = 0;
    if (focused) found.focus({ preventScroll: true });
  }

  #focus(target) {
    if (!this.groups.has(target)) return;
    for (const one of this.groups.keys()) one.tabIndex = one === target ? 0 : -1;
    this.current = target.dataset.key;
    this.#tip(target);
  }

  #over(target) {
    if (this.groups.has(target)) this.#tip(target);
    else if (!this.groups.has(document.activeElement)) this.#hide();
  }

  #tip(target) {
    const some = this.groups.get(target);
    const lines = describe(some);
    replaceAll(this.tip, [
      element("b", { class: `key ${colour(some)}${isEmpty(some) ? " empty" : ""}` }, lines[0]),
      ...lines.slice(1).map((one) => element("p", {}, one)),
    ]);
    this.tip.hidden = false;
    const box = target.getBoundingClientRect();
    const own = this.tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, box.left + box.width / 2 - own.width / 2), innerWidth - own.width - 8);
    const above = box.top - own.height - 8;
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${above > 8 ? above : box.bottom + 8}px`;
  }

  #hide() {
    this.tip.hidden = true;
  }

  #choose(target) {
    const some = this.groups.get(target);
    if (!some || some.length < 2) return;
    const from = some[0].begin;
    const to = Math.max(some.at(-1).end, from + 1);
    const margin = (to - from) * 0.1;
    this.current = target.dataset.key;
    this.#hide();
    this.place.dispatchEvent(new CustomEvent("zoom", { detail: [from - margin, to + margin] }));
  }

  #key(event) {
    const target = event.target;
    if (!this.groups.has(target) || event.altKey || event.ctrlKey || event.metaKey) return;
    const all = [...this.groups.keys()];
    const line = [...target.parentElement.children];
    const lines = [...this.place.querySelectorAll(".track")].filter((one) => one.children.length);
    const at = line.indexOf(target);
    const beside = (step) => {
      const next = lines[lines.indexOf(target.parentElement) + step];
      if (!next) return null;
      const x = target.getBoundingClientRect().left;
      const far = (one) => Math.abs(one.getBoundingClientRect().left - x);
      return [...next.children].reduce((a, b) => (far(b) < far(a) ? b : a));
    };
    const moves = {
      ArrowRight: () => line[at + 1] ?? all[all.indexOf(target) + 1],
      ArrowLeft: () => line[at - 1] ?? all[all.indexOf(target) - 1],
      ArrowDown: () => beside(1),
      ArrowUp: () => beside(-1),
      Home: () => line[0],
      End: () => line.at(-1),
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    moves[event.key]()?.focus();
  }
}

// Where a line's blocks are, in px: {x0, x1, some}, ascending, none over another, each of them
// NARROW at least, up to `width`. `all`: what is empty counts wherever it lies; else only an open
// ledger, which is at the end, does so.
export function layout(segments, [from, to], width, { all = false, equal = false } = {}) {
  const stays = (one) => one.empty && (all || one.state === "open");
  const seen = segments.filter((one) => stays(one) || (one.end >= from && one.begin <= to));
  const at = (time) => width * Math.min(1, Math.max(0, (time - from) / (to - from)));
  const single = seen.map((one, number) => {
    if (equal) return { x0: (number * width) / seen.length, x1: ((number + 1) * width) / seen.length, some: [one] };
    return one.empty && one.state === "open" ? { x0: width, x1: width, some: [one] } : { x0: at(one.begin), x1: at(one.end), some: [one] };
  });
  let blocks = single;
  for (let narrow = NARROW; !fit(blocks, width) && narrow < width; narrow *= 2) blocks = joined(single, narrow, kind);
  for (let narrow = NARROW; !fit(blocks, width); narrow *= 2) blocks = joined(single, narrow, () => "");
  const least = Math.min(LEAST, Math.max(NARROW, (SHARE * width) / blocks.length));
  return pushed(blocks.map((one) => ({ ...one })), Math.min(least, width / blocks.length), width);
}

// Whether all have their width without leaving where they belong by too much.
function fit(blocks, width) {
  const missing = blocks.reduce((total, one) => total + Math.max(0, NARROW - (one.x1 - one.x0)), 0);
  return blocks.length < 2 || (missing <= SHARE * width && blocks.length * NARROW <= width);
}

// Neighbours of one kind as one, as far as it is no wider than `narrow`.
function joined(blocks, narrow, kindOf) {
  const found = [];
  for (const one of blocks) {
    const last = found.at(-1);
    if (last && kindOf(last.some[0]) === kindOf(one.some[0]) && one.x1 - last.x0 <= narrow) {
      last.x1 = one.x1;
      last.some.push(...one.some);
    } else {
      found.push({ ...one, some: [...one.some] });
    }
  }
  return found;
}

// Each `least` wide: to the right as far as need be, and back again where that is over the end.
function pushed(blocks, least, width) {
  let edge = 0;
  for (const one of blocks) {
    one.x0 = Math.max(one.x0, edge);
    one.x1 = Math.max(one.x1, one.x0 + least);
    edge = one.x1;
  }
  edge = width;
  for (const one of [...blocks].reverse()) {
    one.x1 = Math.min(one.x1, edge);
    one.x0 = Math.min(one.x0, one.x1 - least);
    edge = one.x0;
  }
  return blocks;
}

const kind = (one) => `${colourOf(one)} ${one.state} ${one.empty}`;
const isEmpty = (some) => some.every((one) => one.empty);

// Of several kinds, what is lost shows; else the newest with entries.
function colour(some) {
  const filled = some.filter((one) => !one.empty);
  return some.some((one) => one.state === "lost") ? "lost" : colourOf(filled.at(-1) ?? some.at(-1));
}

// What a block is, line by line: for the tip and for screen readers.
export function describe(some) {
  const first = some[0];
  const last = some.at(-1);
  const ledgers = some.every((one) => one.ledgers !== null) ? sum(some, "ledgers") : null;
  const alone = first.first === last.last;
  const names = alone ? `Ledger ${first.first}` : `Ledgers ${first.first} to ${last.last}`;
  const where = first.partition < 0 ? "" : ` of partition ${first.partition}`;
  const reasons = [...new Set(some.map((one) => one.reason))];
  const rows = some.some((one) => one.rows !== null) ? `${plural(sum(some, "rows"), "row")}, ` : "";
  const entries = sum(some, "entries");
  const lines = [
    `${names}${where}${!alone && ledgers !== null ? ` (${count(ledgers)})` : ""}`,
    [...new Set(some.map((one) => (one.state === "lost" ? one.state : `${one.state}, ${TIERS[one.tier] ?? one.tier}`)))].join("; "),
    reasons.length > 2 ? `${reasons.slice(0, 2).join("; ")}; …` : reasons.join("; "),
    isEmpty(some) ? "no entries" : `${rows}${entries ? `${plural(entries, "entry", "entries")}, ` : ""}${size(sum(some, "bytes"))}`,
  ];
  const froms = some.map((one) => one.published_from).filter((one) => one !== null);
  const tos = some.map((one) => one.published_to).filter((one) => one !== null);
  if (froms.length && tos.length) {
    const [from, to] = [Math.min(...froms), Math.max(...tos)];
    lines.push(`published ${moment(from)} to ${moment(to)} (${duration(to - from)})`);
  }
  if (last.closed_at !== null) lines.push(`closed ${moment(last.closed_at)}`);
  if (some.length > 1) lines.push(`${plural(some.length, "block")} too narrow to draw: select to zoom in`);
  return lines;
}

export function showLegend(list) {
  const keys = Object.entries({ ...LEGEND, empty: HOLLOW });
  replaceAll(list, keys.map(([name, text]) => element("li", { class: `key ${name}` }, text)));
}

export const legend = () => showLegend(byId("legend"));
