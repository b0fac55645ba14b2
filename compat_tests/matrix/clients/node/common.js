// What the drivers of Node clients share: commands from standard input, lines of JSON to standard output.
'use strict';

const readline = require('readline');

const PATIENCE_MS = 25000;
const FILL = 'x'.repeat(100);

// The texts of record n, as compat_tests/matrix/records.py has them.
const key = (number) => `key-${number % 50}`;
const value = (number) => `value-${number}-${FILL}`;
const header = (number) => `header-${Math.floor(number / 100)}`;

const tell = (event) => process.stdout.write(`${JSON.stringify(event)}\n`);

const text = (data) => (data === null || data === undefined ? null : data.toString());

/** Wait for a promise, but not longer than all the patience there is. */
async function limited(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took more than ${PATIENCE_MS} ms`)), PATIENCE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Obey commands, one after another; `join` gets a promise of the line that ends it. */
async function serve(client) {
  const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  for (let line = await lines.next(); !line.done; line = await lines.next()) {
    const [verb, ...words] = line.value.split(' ');
    try {
      await obey(client, verb, words, () => lines.next());
      tell({ done: true });
    } catch (problem) {
      tell({ error: `${problem.name}: ${problem.message}` });
    }
  }
  process.exit(0);
}

async function obey(client, verb, words, leave) {
  if (verb === 'create') {
    await client.create(words[0], Number(words[1]));
  } else if (verb === 'produce') {
    const [mode, topic, codec, ...numbers] = words;
    const [first, count, timestamp] = numbers.map(Number);
    await client.produce(mode, topic, codec, first, count, timestamp);
  } else if (verb === 'consume') {
    await client.consume(words[0] === 'committed', words[1], Number(words[2]), Number(words[3]));
  } else {
    await client.join(words[0], words[1], leave);
  }
}

module.exports = { header, key, limited, serve, tell, text, value };
