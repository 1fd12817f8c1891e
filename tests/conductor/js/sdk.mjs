// What scenarios of the JavaScript SDK share: clients, workers, waiting. What the SDK asks for and is given
// is written down for py/complete.py, as py/calls.py does it.
import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import { after } from 'node:test'
import { OrkesClients, TaskManager } from '@io-orkes/conductor-javascript'

export const clients = await OrkesClients.from({ serverUrl: process.env.CONDUCTOR_SERVER_URL })
export const client = clients.getClient()
export const executor = clients.getWorkflowClient()
export const metadata = clients.getMetadataClient()
export const tasks = clients.getTaskClient()
export const scheduler = clients.getSchedulerClient()
export const events = clients.getEventClient()

if (process.env.WINDLASS_CALLS) {
  client.interceptors.response.use((response, request) => {
    if (response.ok) {
      appendFileSync(process.env.WINDLASS_CALLS, `${request.method} ${new URL(request.url).pathname}\n`)
    }
    return response
  })
}

export const silent = { info() {}, debug() {}, warn() {}, error() {} }
const managers = []
after(async () => {
  await Promise.all(managers.map((manager) => manager.stopPolling()))
})

// A name that no other scenario uses.
export const unique = (name) => `${name}_${process.pid}_${Math.random().toString(36).slice(2)}`

// Workers that run until the file's scenarios are done.
export function work(...workers) {
  const manager = new TaskManager(client, workers, {
    logger: silent, options: { pollInterval: 20, concurrency: 5 },
  })
  manager.startPolling()
  managers.push(manager)
  return manager
}

// A workflow of these tasks, which is there from now on.
export async function define(name, taskList, more = {}) {
  await metadata.registerWorkflowDef({
    name, version: 1, timeoutSeconds: 0, inputParameters: [], outputParameters: {}, tasks: taskList, ...more,
  }, true)
  return name
}

export const start = (name, input = {}, more = {}) => executor.startWorkflow({ name, version: 1, input, ...more })

// What is looked for, once it is there.
export async function eventually(look, what = 'what was looked for') {
  for (const end = Date.now() + 10_000; Date.now() < end;) {
    const found = await look()
    if (found) return found
    await new Promise((done) => setTimeout(done, 20))
  }
  throw new Error(`${what} does not come`)
}

export const ended = (id) => eventually(async () => {
  const found = await executor.getWorkflow(id, true)
  return ['RUNNING', 'PAUSED'].includes(found.status) ? null : found
}, `the end of workflow ${id}`)

// The workflow once its newest task of this name has a status.
export const untilTask = (id, reference, status = 'IN_PROGRESS') => eventually(async () => {
  const found = await executor.getWorkflow(id, true)
  return newest(found, reference)?.status === status ? found : null
}, `${status} of ${reference}`)

export const newest = (workflow, reference) =>
  workflow.tasks.findLast((task) => task.referenceTaskName === reference)

export const states = (workflow) => workflow.tasks.map((task) => [task.referenceTaskName, task.status])

// A task as a worker gets it.
export const poll = (type) => eventually(async () => {
  const found = await request('GET', `/tasks/poll/batch/${type}`, { query: { count: 1, timeout: 500, workerid: 'w' } })
  return found.data[0]
}, `a task of type ${type}`)

// A request by the SDK's client for which it has no method, or whose failure is looked at.
export const request = (method, path, more = {}) => client.request({
  method, url: `/api${path}`, throwOnError: false,
  headers: more.body === undefined ? {} : { 'Content-Type': 'application/json' }, ...more,
})

// The body with which a request fails.
export async function fails(status, method, path, more) {
  const { response, error } = await request(method, path, more)
  assert.equal(response.status, status)
  assert.equal(error.status, status)
  assert.equal(typeof error.retryable, 'boolean')
  return error
}
