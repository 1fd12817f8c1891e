// Workers and workflows of the JavaScript SDK, unchanged.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  OrkesClients, TaskManager, simpleTask,
} from '@io-orkes/conductor-javascript'

const clients = await OrkesClients.from({ serverUrl: process.env.CONDUCTOR_SERVER_URL })
const executor = clients.getWorkflowClient()
const metadata = clients.getMetadataClient()
const managers = []
after(async () => {
  await Promise.all(managers.map((manager) => manager.stopPolling()))
})

const unique = (name) => `${name}_${process.pid}_${Math.random().toString(36).slice(2)}`

function work(...workers) {
  const manager = new TaskManager(clients.getClient(), workers, {
    logger: { info() {}, debug() {}, warn() {}, error() {} },
    options: { pollInterval: 50, concurrency: 5 },
  })
  manager.startPolling()
  managers.push(manager)
}

async function ended(id) {
  for (let i = 0; i < 1_000; i += 1) {
    const found = await executor.getWorkflow(id, true)
    if (!['RUNNING', 'PAUSED'].includes(found.status)) return found
    await new Promise((done) => setTimeout(done, 20))
  }
  throw new Error(`workflow ${id} does not end`)
}

test('five tasks one behind the other, twenty times', async () => {
  const names = [1, 2, 3, 4, 5].map((n) => unique(`step${n}`))
  const name = unique('five')
  await metadata.registerWorkflowDef({
    name, version: 1, timeoutSeconds: 0, inputParameters: [], outputParameters: { n: `\${${names[4]}.output.n}` },
    tasks: names.map((task, at) =>
      simpleTask(task, task, { n: at === 0 ? '${workflow.input.n}' : `\${${names[at - 1]}.output.n}` })),
  }, true)
  work(...names.map((taskDefName) => ({
    taskDefName,
    execute: async (task) => ({ status: 'COMPLETED', outputData: { n: task.inputData.n + 1 } }),
  })))
  const ids = await Promise.all(Array.from({ length: 20 }, (_, n) =>
    executor.startWorkflow({ name, version: 1, input: { n } })))
  for (const [n, id] of ids.entries()) {
    const run = await ended(id)
    assert.equal(run.status, 'COMPLETED')
    assert.equal(run.output.n, n + 5)
  }
})

test('a worker that throws fails its task, and the next attempt counts', async () => {
  const task = unique('moody')
  await metadata.registerTask({
    name: task, retryCount: 2, retryDelaySeconds: 0, timeoutSeconds: 60, responseTimeoutSeconds: 30,
    totalTimeoutSeconds: 0,
  })
  const name = unique('moody_flow')
  await metadata.registerWorkflowDef({
    name, version: 1, timeoutSeconds: 0, tasks: [simpleTask(task, task, {})], inputParameters: [], outputParameters: {},
  }, true)
  let calls = 0
  work({
    taskDefName: task,
    execute: async () => {
      calls += 1
      if (calls === 1) throw new Error('not today')
      return { status: 'COMPLETED', outputData: { calls } }
    },
  })
  const run = await ended(await executor.startWorkflow({ name, version: 1, input: {} }))
  assert.equal(run.status, 'COMPLETED')
  assert.equal(run.output.calls, 2)
  assert.match(run.tasks[0].reasonForIncompletion, /not today/)
})
