// What every client is asked to do, and how it tells what it saw; the same story as in go/story.
'use strict'

const PARTITIONS = 3
const PER_CODEC = 60
const FIRST_TIME_MS = 1_700_000_000_000
const CUT_AT = 5
const CONFIGS = { 'retention.ms': '-1', 'max.message.bytes': '1000000' }
const CHANGED = 'max.message.bytes'
const CHANGED_TO = '2000000'

const record = (n) => ({
  partition: n % PARTITIONS,
  key: `key-${n}`,
  value: `value ${n} `.repeat((n % 50) + 1),
  timestamp: FIRST_TIME_MS + n,
  headers: { n: String(n) },
})

// The records of the codec with this number, in the order they are sent.
const recordsOf = (number) => Array.from({ length: PER_CODEC }, (_, i) => record(number * PER_CODEC + i))

const inOrder = (records) => records.sort((a, b) => a.partition - b.partition || a.offset - b.offset)

// Ask until the answer is the wanted one: a broker may hear of a change a moment after it was made.
const until = async (wanted, ask) => {
  for (const began = Date.now(); ; await new Promise((resolve) => setTimeout(resolve, 20))) {
    const answer = await ask()
    if (answer === wanted || Date.now() - began > 15_000) return answer
  }
}

const run = (story) => {
  const [bootstrap, topic] = process.argv.slice(2)
  story(bootstrap, topic).then(
    (told) => console.log(JSON.stringify(told)),
    (error) => {
      console.error(error)
      process.exit(1)
    },
  )
}

module.exports = { PARTITIONS, FIRST_TIME_MS, CUT_AT, CONFIGS, CHANGED, CHANGED_TO, recordsOf, inOrder, until, run }
