// Drives kafkajs.
'use strict';

const { CompressionTypes, CompressionCodecs, Kafka, logLevel } = require('kafkajs');
const { header, key, limited, serve, tell, text, value } = require('./common');

const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
};

/** Codecs that kafkajs leaves to other packages, loaded when first needed. */
const ADD = {
  snappy: async () => (CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')),
  lz4: async () => {
    const lz4 = require('lz4-napi');
    CompressionCodecs[CompressionTypes.LZ4] = () => codec(lz4.compressFrame, lz4.decompressFrame);
  },
  zstd: async () => {
    const zstd = await new Promise((resolve) => require('zstd-codec').ZstdCodec.run(resolve));
    const simple = new zstd.Simple();
    CompressionCodecs[CompressionTypes.ZSTD] = () => codec(
      (data) => simple.compress(data),
      (data) => simple.decompress(data),
    );
  },
};

const codec = (compress, decompress) => ({
  compress: async (encoder) => Buffer.from(await compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from(await decompress(buffer)),
});

class Client {
  constructor(bootstrap) {
    this.kafka = new Kafka({
      brokers: [bootstrap],
      clientId: 'matrix',
      requestTimeout: 15000,
      retry: { retries: 5 },
      logLevel: logLevel.ERROR,
      logCreator: () => ({ log }) => process.stderr.write(`${log.message} ${log.error || ''}\n`),
    });
  }

  async create(topic, partitions) {
    const admin = this.kafka.admin();
    await admin.connect();
    await admin.createTopics({ topics: [{ topic, numPartitions: partitions }], timeout: 15000 });
    await admin.disconnect();
  }

  async produce(mode, topic, codec, first, count, timestamp) {
    if (ADD[codec]) await ADD[codec]();
    const inTransaction = mode === 'aborted' || mode === 'committed';
    const settings = mode === 'plain' ? {} : { idempotent: true, maxInFlightRequests: 1 };
    if (inTransaction) settings.transactionalId = topic;
    const producer = this.kafka.producer(settings);
    await producer.connect();
    try {
      const sender = inTransaction ? await limited(producer.transaction(), 'beginning a transaction') : producer;
      const messages = Array.from({ length: count }, (_, i) => ({
        key: key(first + i),
        value: value(first + i),
        timestamp: String(timestamp + first + i),
        headers: { n: header(first + i) },
      }));
      await limited(sender.send({ topic, messages, acks: -1, compression: CODECS[codec] }), 'producing');
      if (inTransaction) await (mode === 'committed' ? sender.commit() : sender.abort());
    } finally {
      await producer.disconnect();
    }
  }

  /** kafkajs reads in groups only: this one has no other member, and commits nothing. */
  async consume(committed, topic, partitions, count) {
    const consumer = this.consumer(`${topic}-reader-${Date.now()}`, { readUncommitted: !committed });
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    let seen = 0;
    const enough = new Promise((resolve) => {
      const eachMessage = async ({ partition, message }) => {
        tellMessage(partition, message);
        seen += 1;
        if (seen === count) resolve();
      };
      consumer.run({ autoCommit: false, eachMessage });
    });
    await limited(enough, 'consuming').finally(() => consumer.disconnect());
  }

  async join(topic, group, leave) {
    const consumer = this.consumer(group, {});
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      tell({ assigned: [...(payload.memberAssignment[topic] || [])].sort((a, b) => a - b) });
    });
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({ eachMessage: async ({ partition, message }) => tellMessage(partition, message) });
    await leave();
    // Commits what was handled, and leaves.
    await consumer.disconnect();
  }

  consumer(groupId, more) {
    const times = { sessionTimeout: 10000, heartbeatInterval: 500, maxWaitTimeInMs: 100 };
    return this.kafka.consumer({ groupId, ...times, ...more });
  }
}

function tellMessage(partition, message) {
  tell({
    partition,
    offset: Number(message.offset),
    key: text(message.key),
    value: text(message.value),
    timestamp: Number(message.timestamp),
    header: text((message.headers || {}).n),
  });
}

serve(new Client(process.argv[process.argv.length - 1]));
