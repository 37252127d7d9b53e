// Writes node.jsonl: node node_records.js > node.jsonl
//
// Pulsar's Node client registers the schema that it is given and sends bytes that are made already,
// so what is written is what JSON.stringify makes of JavaScript's values.
const schema = JSON.stringify({type: 'record', name: 'Event', fields: [
  {name: 'id', type: 'long'}, {name: 'amount', type: 'double'}, {name: 'none', type: ['null', 'double']},
  {name: 'at', type: {type: 'long', logicalType: 'timestamp-millis'}},
  {name: 'ms', type: {type: 'long', logicalType: 'timestamp-millis'}},
  {name: 'big', type: 'long'}, {name: 'huge', type: 'double'}, {name: 'flag', type: 'boolean'},
  {name: 'tags', type: {type: 'array', items: 'string'}}, {name: 'raw', type: 'bytes'}]});
const value = {id: 5, amount: 1e-7, none: NaN, at: new Date(1700000000123), ms: new Date(1700000000123).getTime(),
  big: (2n ** 60n).toString(), huge: 1e21, flag: true, tags: ['a', '\u2028'], raw: Buffer.from('hi').toString('base64')};
console.log(JSON.stringify({name: 'node event', type: 'JSON', schema, payload: JSON.stringify(value)}));
