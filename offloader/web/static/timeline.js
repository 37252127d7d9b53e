// A topic's segments on a time axis: a line for each partition, a button for each block of it.
//
// Neighbours of one kind that would be too narrow to point at are drawn as one; choosing it zooms
// in. One block is in the tab order, and the arrow keys move from there.
import { byId, clockTime, count, duration, element, moment, plural, replaceAll, size } from "./common.js";

const NARROW = 6; // px
const MOST = 300; // blocks in a line, whatever their kinds
export const RANGES = [["1 h", 3600], ["6 h", 21600], ["24 h", 86400], ["7 d", 604800], ["30 d", 2592000], ["All", null]];
const TIERS = {
  parquet: "in the table (Parquet)",
  bookkeeper: "on the bookies (BookKeeper)",
  broker: "through the broker",
};
const LEGEND = { ...TIERS, lost: "lost: deleted before it was offloaded" };
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
    const first = this.segments.reduce((least, one) => Math.min(least, one.begin), this.now);
    return [Math.min(first, this.now - 60), this.now];
  }

  // [from, to, segments] of each block, from and to as shares of the width.
  #blocks(some, [from, to], width) {
    const seen = some.filter((one) => one.end >= from && one.begin <= to);
    const narrow = Math.max(NARROW / width, this.segments.length > 20000 ? 2 * NARROW / width : 0);
    const share = (at) => Math.min(1, Math.max(0, (at - from) / (to - from)));
    const found = [];
    seen.forEach((one, number) => {
      const x0 = this.equal ? number / seen.length : share(one.begin);
      const x1 = this.equal ? (number + 1) / seen.length : share(one.end);
      const last = found.at(-1);
      const fits = last && (last.x1 - last.x0 < narrow || x1 - x0 < narrow / 2) && x1 - last.x0 < 4 * narrow;
      if (fits && colourOf(last.some[0]) === colourOf(one) && last.some[0].state === one.state) {
        last.x1 = x1;
        last.some.push(one);
      } else if (found.length >= MOST && one.state !== "lost") {
        last.x1 = x1;
        last.some.push(one);
      } else {
        found.push({ x0, x1, some: [one] });
      }
    });
    return found;
  }

  draw() {
    const width = this.place.clientWidth - 48;
    if (width <= 0) return;
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
      for (const block of this.#blocks(some, [from, to], width)) track.append(this.#button(block, width));
      return element("div", { class: "line" }, element("span", { class: "label", "aria-hidden": "true" }, partition < 0 ? "–" : `${partition}`), track);
    });
    replaceAll(this.place, [...lines, this.#axis(from, to, width)]);
    this.#keepCurrent(focused);
  }

  #button({ x0, x1, some }, width) {
    const made = element("button", { type: "button", tabindex: "-1", class: `seg ${colourOf(some[0])} ${some[0].state}`, "aria-label": describe(some).join("; "), "data-key": `${some[0].partition}:${some[0].first}` });
    made.style.left = `${100 * Math.min(x0, 1 - 3 / width)}%`;
    made.style.width = `max(3px, calc(${100 * (x1 - x0)}% - 1px))`;
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
      const text = day ? moment(at).split(",")[0] : clockTime(at);
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
      element("b", { class: `key ${colourOf(some[0])}` }, lines[0]),
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
    first.state === "lost" ? first.state : `${first.state}, ${TIERS[first.tier] ?? first.tier}`,
    reasons.length > 2 ? `${reasons.slice(0, 2).join("; ")}; …` : reasons.join("; "),
    `${rows}${entries ? `${plural(entries, "entry", "entries")}, ` : ""}${size(sum(some, "bytes"))}`,
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
  replaceAll(list, Object.entries(LEGEND).map(([name, text]) => element("li", { class: `key ${name}` }, text)));
}

export const legend = () => showLegend(byId("legend"));
