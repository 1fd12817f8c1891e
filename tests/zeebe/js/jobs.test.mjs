// Job workers of zeebe-node: polls, results, failures, errors, incidents.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

import { client, createJob, deployTask, jobView, sleep, startTask, unique, until } from './windlass.mjs'

const NOT_FOUND = 5
const FAILED_PRECONDITION = 9
const INVALID_ARGUMENT = 3

let zbc
before(() => { zbc = client() })
after(() => zbc.close())

const polled = (type, more = {}) =>
  zbc.activateJobs({
    type,
    worker: 'js',
    timeout: 60_000,
    maxJobsToActivate: 10,
    requestTimeout: -1,
    ...more,
  })

/** zeebe-node's activateJobs never answers when it is answered with nothing. */
const nothing = (type, more) =>
  Promise.race([polled(type, more).then((jobs) => jobs.length === 0), sleep(300).then(() => true)])

test('the topology is one broker with a leader', async () => {
  const topology = await zbc.topology()
  assert.equal(topology.clusterSize, 1)
  assert.equal(topology.brokers.length, 1)
  assert.equal(topology.brokers[0].partitions[0].role, 'LEADER')
  assert.match(topology.gatewayVersion, /^8\.\d+\.\d+$/)
})

test('a worker gets what it needs and completes', async () => {
  const type = unique('worker')
  const seen = []
  const worker = zbc.createWorker({
    taskType: type,
    taskHandler: (job) => {
      seen.push(job)
      return job.complete({ sum: job.variables.a + 1 })
    },
  })
  await deployTask(zbc, type, { headers: { to: 'you' } })
  const { variables } = await zbc.createProcessInstanceWithResult({
    bpmnProcessId: type,
    variables: { a: 41 },
    requestTimeout: 10_000,
  })
  assert.deepEqual(variables, { a: 41, sum: 42 })
  assert.equal(seen.length, 1)
  assert.equal(seen[0].type, type)
  assert.deepEqual(seen[0].customHeaders, { to: 'you' })
  await worker.close()
})

test('a worker that waits gets a job at once', async () => {
  const type = unique('waits')
  let got
  const worker = zbc.createWorker({
    taskType: type,
    longPoll: 30_000,
    taskHandler: (job) => {
      got = Date.now()
      return job.complete()
    },
  })
  await sleep(300)
  const created = Date.now()
  await startTask(zbc, type)
  await until(() => got, 'the job')
  assert.ok(got - created < 1_000, `${got - created} ms`)
  await worker.close()
})

test('many jobs, each completed once', async () => {
  const type = unique('many')
  const counts = new Map()
  const keys = await Promise.all(Array.from({ length: 200 }, () => startTask(zbc, type)))
  const worker = zbc.createWorker({
    taskType: type,
    maxJobsToActivate: 32,
    taskHandler: (job) => {
      counts.set(job.key, (counts.get(job.key) ?? 0) + 1)
      return job.complete()
    },
  })
  await until(() => counts.size === keys.length, 'the last job')
  assert.ok([...counts.values()].every((count) => count === 1))
  await worker.close()
})

test('a batch worker gets batches', async () => {
  const type = unique('batch')
  const keys = await Promise.all(Array.from({ length: 10 }, () => startTask(zbc, type)))
  const done = []
  const worker = zbc.createBatchWorker({
    taskType: type,
    jobBatchMinSize: 5,
    jobBatchMaxTime: 5,
    timeout: 60_000,
    taskHandler: async (jobs) => {
      for (const job of jobs) {
        done.push(job.key)
        await job.complete()
      }
    },
  })
  await until(() => done.length === keys.length, 'the batches')
  await worker.close()
})

test('only the wanted variables', async () => {
  const type = unique('fetch')
  await startTask(zbc, type, { variables: { a: 1, b: { c: [2] }, d: 3 } })
  const [job] = await polled(type, { fetchVariable: ['b', 'missing'] })
  assert.deepEqual(job.variables, { b: { c: [2] } })
})

test('polls that find nothing leave nothing behind', async () => {
  const type = unique('empty')
  assert.ok(await nothing(type))
  assert.ok(await nothing(type, { requestTimeout: 100 }))
  const key = await createJob(zbc, type)
  const [job] = await polled(type)
  assert.equal(job.key, key)
})

test('the second completion finds nothing', async () => {
  const type = unique('twice')
  await startTask(zbc, type)
  const [job] = await polled(type)
  const complete = () => zbc.completeJob({ jobKey: job.key, variables: {} })
  await complete()
  await assert.rejects(complete(), { code: NOT_FOUND })
})

test('failures count down, wait, and end in an incident', async () => {
  const type = unique('fails')
  const key = await createJob(zbc, type, { retries: 2 })
  const fail = (retries, retryBackOff = 0) =>
    zbc.failJob({ jobKey: key, retries, errorMessage: 'no', retryBackOff })
  await polled(type)
  await fail(1, 500)
  assert.ok(await nothing(type, { requestTimeout: 50 }))
  const [again] = await polled(type, { requestTimeout: 5_000 })
  assert.equal(again.retries, 1)
  await fail(0)
  const view = await jobView(key)
  assert.equal(view.state, 'incident')
  const complete = zbc.completeJob({ jobKey: key, variables: {} })
  await assert.rejects(complete, { code: FAILED_PRECONDITION })
  const incidentKey = String(view.incident.key)
  await assert.rejects(zbc.resolveIncident({ incidentKey }), { code: FAILED_PRECONDITION })
  await zbc.updateJobRetries({ jobKey: key, retries: 1 })
  await zbc.resolveIncident({ incidentKey })
  const [last] = await polled(type)
  assert.equal(last.key, key)
})

test('an error that nobody catches is an incident', async () => {
  const type = unique('error')
  const key = await createJob(zbc, type)
  const worker = zbc.createWorker({ taskType: type, taskHandler: (job) => job.error('E1', 'no') })
  await until(async () => (await jobView(key)).state === 'incident', 'the incident')
  assert.equal((await jobView(key)).incident.code, 'E1')
  await worker.close()
})

test('a worker that overruns can still complete', async () => {
  const type = unique('late')
  await startTask(zbc, type)
  const [job] = await polled(type, { timeout: 50 })
  await sleep(200)
  await assert.rejects(
    zbc.failJob({ jobKey: job.key, retries: 1, errorMessage: '', retryBackOff: 0 }),
    { code: FAILED_PRECONDITION },
  )
  await zbc.completeJob({ jobKey: job.key, variables: {} })
})

test('what is refused', async () => {
  const retries = 0
  await assert.rejects(zbc.updateJobRetries({ jobKey: '1', retries }), { code: INVALID_ARGUMENT })
  await assert.rejects(zbc.updateJobRetries({ jobKey: '1', retries: 1 }), { code: NOT_FOUND })
  await assert.rejects(zbc.resolveIncident({ incidentKey: '1' }), { code: NOT_FOUND })
})
