// A job over the streams of @platformatic/kafka: it sends every value of NAME in capitals to NAME-out, until it is ended.
// The records of a batch and the offsets that were read are committed in one transaction.
// Arguments: the bootstrap servers, NAME.

import { Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'

const BATCH = 100
const [bootstrap, name] = process.argv.slice(2)
// Apache Kafka refuses a transaction while it still writes the markers of the one before; by default the client waits a second.
const common = { clientId: name, bootstrapBrokers: [bootstrap], retries: 100, retryDelay: 50 }

const producer = new Producer({
  ...common,
  serializers: stringSerializers,
  idempotent: true,
  transactionalId: name,
  // The job has no producer id yet. By default the client asks for the producer id 0, which another transactional id may have.
  producerId: -1n,
  producerEpoch: -1
})
const consumer = new Consumer({
  ...common,
  groupId: name,
  deserializers: stringDeserializers,
  sessionTimeout: 6000,
  heartbeatInterval: 1000,
  isolationLevel: 1
})

async function commitBatch (batch) {
  const transaction = await producer.beginTransaction()
  await transaction.addConsumer(consumer)
  const messages = batch.map(({ partition, key, value }) => ({
    topic: `${name}-out`, partition, key, value: value.toUpperCase()
  }))
  await transaction.send({ messages })
  const last = new Map(batch.map(message => [message.partition, message]))
  for (const message of last.values()) {
    await transaction.addOffset(message)
  }
  await transaction.commit()
}

process.once('SIGTERM', () => process.exit(0))

const stream = await consumer.consume({
  topics: [name], autocommit: false, mode: 'committed', fallbackMode: 'earliest', maxWaitTime: 200
})
let batch = []
for await (const message of stream) {
  batch.push(message)
  if (batch.length === BATCH || stream.readableLength === 0) {
    await commitBatch(batch)
    batch = []
  }
}
