// Random objects as Node.js applications write them: JSON.stringify, under an Avro definition.
//
//     node client.js SEED SCHEMAS MESSAGES
//
// The Node client sends ready bytes and a definition as text, so no client is needed here. Prints a
// JSON line a message, as the Go client does.
"use strict";

let state;

function random() {
  // mulberry32: Math.random takes no seed.
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}

const below = (limit) => Math.floor(random() * limit);
const pick = (items) => items[below(items.length)];
const LETTERS = [..."aZ09 _-\"\\/<>&'\u00e4\0\u001f\n\t\u2028\u20ac\u{1f600}"];
const text = () => Array.from({ length: below(8) }, () => pick(LETTERS)).join("");
const same = (value) => value;

let names = 0;

// A kind has its Avro definition, a maker of values, and what shows a value.
function simple() {
  return pick([
    { type: "boolean", make: () => random() < 0.5, show: same },
    { type: "int", make: () => below(2 ** 32) - 2 ** 31, show: same },
    {
      type: "long",
      make: () => pick([0, 1, -1, 2 ** 53 - 1, 1 - 2 ** 53, below(2 ** 40)]),
      show: same,
    },
    {
      type: ["null", "double"],
      make: () => pick([0.1, 1e21, 1e-7, 5e-324, NaN, Infinity, random() * 10 ** below(30)]),
      // JSON.stringify makes null of what is not finite.
      show: (value) => (Number.isFinite(value) ? String(value) : null),
    },
    { type: "string", make: text, show: same },
    {
      type: { type: "long", logicalType: "timestamp-millis" },
      make: () => new Date(below(4e12) - 2e12),
      // Nanoseconds, which a number of JavaScript cannot hold.
      show: (value) => new Nanoseconds(value),
    },
    {
      type: "bytes",
      make: () => Buffer.from(Array.from({ length: below(6) }, () => below(256))).toString("base64"),
      show: same,
    },
    {
      type: { type: "enum", name: `E${++names}`, symbols: ["RED", "GREEN"] },
      make: () => pick(["RED", "GREEN"]),
      show: same,
    },
  ]);
}

// Marked with a character that no text of LETTERS has, so that the digits alone can be unquoted.
class Nanoseconds {
  constructor(date) {
    this.text = `${BigInt(date.getTime()) * 1000000n}`;
  }

  toJSON() {
    return `\u0001${this.text}\u0001`;
  }
}

function kind(depth) {
  const choice = depth ? below(8) : 7;
  if (choice === 0) {
    return record(depth - 1);
  }
  if (choice === 1) {
    const of = kind(depth - 1);
    return {
      type: { type: "array", items: of.type },
      make: () => Array.from({ length: below(4) }, of.make),
      show: (items) => items.map(of.show),
    };
  }
  if (choice === 2) {
    const of = kind(depth - 1);
    return {
      type: { type: "map", values: of.type },
      make: () => Object.fromEntries(Array.from({ length: below(4) }, () => [text(), of.make()])),
      show: (map) => Object.fromEntries(Object.entries(map).map(([k, v]) => [k, of.show(v)])),
    };
  }
  return simple();
}

function record(depth) {
  const name = `R${++names}`;
  const members = Array.from({ length: 1 + below(6) }, (_, i) => [`field${i}`, kind(depth)]);
  return {
    type: {
      type: "record",
      name,
      fields: members.map(([member, of]) => ({ name: member, type: of.type })),
    },
    // undefined is left out.
    make: () =>
      Object.fromEntries(members.map(([m, of]) => [m, random() < 0.9 ? of.make() : undefined])),
    show: (value) =>
      Object.fromEntries(
        members.map(([m, of]) => [m, value[m] === undefined ? null : of.show(value[m])]),
      ),
  };
}

const [seed, schemas, messages] = process.argv.slice(2).map(Number);
for (let schema = 0; schema < schemas; schema++) {
  state = seed * 1000003 + schema;
  names = 0;
  const made = record(3);
  for (let i = 0; i < messages; i++) {
    const value = made.make();
    const line = JSON.stringify({
      schema,
      type: "JSON",
      definition: JSON.stringify(made.type),
      payload: Buffer.from(JSON.stringify(value)).toString("base64"),
      value: made.show(value),
    });
    console.log(line.replace(/"\\u0001(-?\d+)\\u0001"/g, "$1"));
  }
}
