// The story with kafkajs. Its consumer only knows groups, so records are read with the Fetch request below it.
'use strict'

const { Kafka, CompressionTypes, ConfigResourceTypes, Partitioners, logLevel } = require('kafkajs')
const Cluster = require('kafkajs/src/cluster')
const socketFactory = require('kafkajs/src/network/socketFactory')
const story = require('./story')

const CODECS = [CompressionTypes.None, CompressionTypes.GZIP]

story.run(async (bootstrap, topic) => {
  const told = {}
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.ERROR, retry: { retries: 2 } })
  const admin = kafka.admin()
  await admin.connect()

  const configEntries = Object.entries(story.CONFIGS).map(([name, value]) => ({ name, value }))
  const wanted = { topics: [{ topic, numPartitions: story.PARTITIONS, replicationFactor: 1, configEntries }] }
  if (!(await admin.createTopics(wanted))) throw new Error('the topic was there')
  told['created again'] = (await admin.createTopics(wanted)) ? '' : 'TOPIC_ALREADY_EXISTS'

  const settings = { idempotent: true, maxInFlightRequests: 1, createPartitioner: Partitioners.DefaultPartitioner }
  const producer = kafka.producer(settings)
  await producer.connect()
  for (const [number, compression] of CODECS.entries()) {
    await producer.send({ topic, acks: -1, compression, messages: story.recordsOf(number) })
  }
  told['too large'] = await refusal(producer.send({ topic, messages: [{ value: Buffer.alloc(3_000_000) }] }))
  told['unknown topic'] = await refusal(producer.send({ topic: `${topic}-unknown`, messages: [{ value: 'x' }] }))
  await producer.disconnect()

  const offsets = await admin.fetchTopicOffsets(topic)
  told.earliest = byPartition(offsets, 'low')
  told.latest = byPartition(offsets, 'high')
  told['at time'] = byPartition(await admin.fetchTopicOffsetsByTimestamp(topic, story.FIRST_TIME_MS + 30), 'offset')
  told.records = await read(kafka, bootstrap, topic)

  told.config = await configOf(admin, topic)
  const entries = Object.entries({ ...story.CONFIGS, [story.CHANGED]: story.CHANGED_TO })
  await admin.alterConfigs({
    validateOnly: false,
    resources: [
      {
        type: ConfigResourceTypes.TOPIC,
        name: topic,
        configEntries: entries.map(([name, value]) => ({ name, value })),
      },
    ],
  })
  told['config changed'] = await story.until(story.CHANGED_TO, async () => (await configOf(admin, topic))[story.CHANGED])

  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(story.CUT_AT) }] })
  told.cut = Number((await admin.fetchTopicOffsets(topic)).find(({ partition }) => partition === 0).low)
  await admin.createPartitions({ topicPartitions: [{ topic, count: story.PARTITIONS + 1 }] })
  told.partitions = await story.until(story.PARTITIONS + 1, async () => {
    const described = await admin.fetchTopicMetadata({ topics: [topic] })
    return described.topics[0].partitions.length
  })
  await admin.deleteTopics({ topics: [topic] })
  const gone = 'UNKNOWN_TOPIC_OR_PARTITION'
  told.deleted = await story.until(gone, async () => ((await admin.listTopics()).includes(topic) ? '' : gone))
  await admin.disconnect()
  return told
})

const refusal = (promise) =>
  promise.then(
    () => '',
    (error) => error.type ?? error.cause?.type ?? String(error),
  )

const byPartition = (offsets, field) =>
  Object.fromEntries(offsets.map((one) => [one.partition, Number(one[field])]).sort())

const configOf = async (admin, topic) => {
  const { resources } = await admin.describeConfigs({ resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }] })
  const own = resources[0].configEntries.filter(({ configSource }) => configSource === 1)
  return Object.fromEntries(own.map(({ configName, configValue }) => [configName, configValue]))
}

// The cluster object that kafkajs makes for each of its consumers.
const read = async (kafka, bootstrap, topic) => {
  const cluster = new Cluster({
    logger: kafka.logger(),
    socketFactory: socketFactory(),
    brokers: [bootstrap],
    clientId: 'tailrace-tests',
    connectionTimeout: 5000,
    requestTimeout: 30000,
    enforceRequestTimeout: true,
    retry: { retries: 2 },
    maxInFlightRequests: null,
    metadataMaxAge: 300000,
    allowAutoTopicCreation: false,
    isolationLevel: 1,
  })
  await cluster.connect()
  await cluster.addTargetTopic(topic)
  const records = []
  for (const { partitionId, leader } of cluster.findTopicPartitionMetadata(topic)) {
    const broker = await cluster.findBroker({ nodeId: leader })
    for (let fetchOffset = 0; ; ) {
      const { responses } = await broker.fetch({
        maxWaitTime: 100,
        minBytes: 1,
        maxBytes: 10_000_000,
        isolationLevel: 1,
        topics: [{ topic, partitions: [{ partition: partitionId, fetchOffset, maxBytes: 1_000 }] }],
      })
      const { messages } = responses[0].partitions[0]
      if (messages.length === 0) break
      for (const message of messages.filter(({ offset }) => Number(offset) >= fetchOffset)) {
        records.push({
          partition: partitionId,
          offset: Number(message.offset),
          timestamp: Number(message.timestamp),
          key: message.key.toString(),
          value: message.value.toString(),
          header: message.headers.n.toString(),
        })
      }
      fetchOffset = Number(messages.at(-1).offset) + 1
    }
  }
  await cluster.disconnect()
  return story.inOrder(records)
}
