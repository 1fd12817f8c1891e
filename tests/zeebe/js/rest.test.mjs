// Camunda's own SDK over REST v2, with strict validation of every answer against its own schemas.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { before, test } from 'node:test'

import createCamundaClient from '@camunda8/orchestration-cluster-api'

import { until } from './windlass.mjs'

/** Searches here see what was answered before them: no waiting for consistency. */
const NOW = { consistency: { waitUpToMs: 0 } }

let camunda
before(() => {
  camunda = createCamundaClient({
    config: {
      CAMUNDA_REST_ADDRESS: process.env.WINDLASS_URL,
      CAMUNDA_AUTH_STRATEGY: 'NONE',
      CAMUNDA_SDK_VALIDATION: 'req:strict,res:strict',
      CAMUNDA_SDK_HTTP_RETRY_MAX_ATTEMPTS: 1,
    },
  })
})

const deploy = async (...names) => {
  const resources = await Promise.all(names.map(async (name) => {
    const content = await readFile(new URL(`../processes/${name}`, import.meta.url))
    return new File([content], name, { type: 'application/xml' })
  }))
  return camunda.createDeployment({ resources })
}

const start = (processDefinitionId, more = {}) =>
  camunda.createProcessInstance({ processDefinitionId, ...more })

const take = async (type, more = {}) => {
  const { jobs } = await camunda.activateJobs({
    type,
    worker: 'sdk',
    timeout: 60_000,
    maxJobsToActivate: 10,
    requestTimeout: 5_000,
    ...more,
  })
  return jobs
}

/** What a call is refused with. */
const refusal = (call) => call().then(() => assert.fail('it was not refused'), (error) => error)

test('the topology is one broker that leads', async () => {
  const topology = await camunda.getTopology()
  assert.equal(topology.clusterSize, 1)
  assert.equal(topology.brokers[0].partitions[0].role, 'leader')
})

test('a process runs from deployment to its end', async () => {
  const deployed = await deploy('service-task.bpmn')
  assert.equal(deployed.deployments[0].processDefinition.processDefinitionId, 'service-task')
  const created = await start('service-task', { variables: { a: 41 }, tags: ['sdk'] })
  const job = (await take('work')).find(
    (candidate) => candidate.processInstanceKey === created.processInstanceKey,
  )
  assert.deepEqual(job.variables, { a: 41 })
  assert.deepEqual(job.customHeaders, { team: 'ops', level: '3' })
  await camunda.completeJob({ jobKey: job.jobKey, variables: { sum: 42 } })
  const { processInstanceKey } = created
  const done = await camunda.getProcessInstance({ processInstanceKey }, NOW)
  assert.equal(done.state, 'COMPLETED')
  const found = await camunda.searchVariables({ filter: { processInstanceKey, name: 'sum' } }, NOW)
  assert.equal(found.items[0].value, '42')
  const elements = await camunda.searchElementInstances({ filter: { processInstanceKey } }, NOW)
  assert.equal(elements.page.totalItems, 3)
  const jobs = await camunda.searchJobs({ filter: { processInstanceKey } }, NOW)
  assert.equal(jobs.items[0].state, 'COMPLETED')
})

test('a worker of the SDK gets a job and completes it', async () => {
  await deploy('one-task.bpmn')
  const seen = []
  const worker = camunda.createJobWorker({
    jobType: 'one-task',
    maxParallelJobs: 4,
    jobTimeoutMs: 10_000,
    pollIntervalMs: 1,
    jobHandler: (job) => {
      seen.push(job.processInstanceKey)
      return job.complete({ done: true })
    },
  })
  const created = await start('one-task', { awaitCompletion: true, requestTimeout: 10_000 })
  assert.equal(created.variables.done, true)
  assert.deepEqual(seen, [created.processInstanceKey])
  worker.stop()
})

test('an incident is found, and resolved once there are retries', async () => {
  await deploy('service-task.bpmn')
  const { processInstanceKey } = await start('service-task')
  const jobs = await take('work')
  const { jobKey } = jobs.find((job) => job.processInstanceKey === processInstanceKey)
  await camunda.failJob({ jobKey, retries: 0, errorMessage: 'it broke' })
  const search = { filter: { processInstanceKey, state: 'ACTIVE' } }
  const found = await camunda.searchIncidents(search, NOW)
  assert.equal(found.page.totalItems, 1)
  const { incidentKey, errorType } = found.items[0]
  assert.equal(errorType, 'JOB_NO_RETRIES')
  const refused = await refusal(() => camunda.resolveIncident({ incidentKey }))
  assert.equal(refused.status, 409)
  await camunda.updateJob({ jobKey, changeset: { retries: 1 } })
  await camunda.resolveIncident({ incidentKey })
  const again = await take('work')
  await camunda.completeJob({ jobKey: again.find((job) => job.jobKey === jobKey).jobKey })
})

test('messages find who waits for them', async () => {
  await deploy('message-catch.bpmn')
  const message = { name: 'scenario-catch', correlationKey: 'sdk', variables: { m: 1 } }
  const refused = await refusal(() => camunda.correlateMessage(message))
  assert.equal(refused.status, 404)
  const { processInstanceKey } = await start('message-catch', { variables: { key: 'sdk' } })
  const waiting = { filter: { processInstanceKey, messageSubscriptionState: 'CREATED' } }
  const subscriptions = await camunda.searchMessageSubscriptions(waiting, NOW)
  assert.equal(subscriptions.items[0].correlationKey, 'sdk')
  const correlated = await camunda.correlateMessage(message)
  assert.equal(correlated.processInstanceKey, processInstanceKey)
  await camunda.publishMessage({ ...message, correlationKey: 'later', timeToLive: 60_000 })
  const body = { variables: { key: 'later' }, awaitCompletion: true, requestTimeout: 10_000 }
  assert.equal((await start('message-catch', body)).variables.m, 1)
  await camunda.broadcastSignal({ signalName: 'nobody', variables: {} })
})

test('a user task is assigned and completed', async () => {
  await deploy('user-task-native.bpmn', 'form.form')
  const { processInstanceKey } = await start('user-task-native', { variables: { owner: 'ann' } })
  const found = await camunda.searchUserTasks({ filter: { processInstanceKey } }, NOW)
  const { userTaskKey, assignee } = found.items[0]
  assert.equal(assignee, 'ann')
  await camunda.unassignUserTask({ userTaskKey })
  await camunda.assignUserTask({ userTaskKey, assignee: 'bob', allowOverride: false })
  await camunda.updateUserTask({ userTaskKey, changeset: { priority: 9 } })
  assert.equal((await camunda.getUserTask({ userTaskKey }, NOW)).priority, 9)
  await camunda.completeUserTask({ userTaskKey, variables: { ok: true } })
  await until(async () => {
    const instance = await camunda.getProcessInstance({ processInstanceKey }, NOW)
    return instance.state === 'COMPLETED'
  }, 'the end')
})

test('listeners of a user task are asked, correct it, and deny', async () => {
  await deploy('task-listeners.bpmn')
  const variables = { b: 'ann', flag: true }
  const { processInstanceKey } = await start('task-listeners', { variables })
  const listen = async (type, result = {}) => {
    const [job] = await take(type)
    assert.equal(job.kind, 'TASK_LISTENER')
    assert.equal(job.processInstanceKey, processInstanceKey)
    await camunda.completeJob({ jobKey: job.jobKey, result: { type: 'userTask', ...result } })
    return job
  }
  const task = async () => {
    const { items } = await camunda.searchUserTasks({ filter: { processInstanceKey } }, NOW)
    return items[0]
  }
  assert.equal((await listen('listen-creating')).listenerEventType, 'CREATING')
  assert.equal((await listen('listen-assigning-1')).listenerEventType, 'ASSIGNING')
  assert.equal((await task()).state, 'ASSIGNING')
  await listen('listen-assigning-2', { corrections: { assignee: 'eve' } })
  await until(async () => (await task()).state === 'CREATED', 'what the listeners let pass')
  const { userTaskKey, assignee } = await task()
  assert.equal(assignee, 'eve')

  const denied = refusal(() => camunda.completeUserTask({ userTaskKey, variables: { ok: false } }))
  await listen('listen-completing-1', { denied: true, deniedReason: 'too early' })
  const problem = await denied
  assert.equal(problem.status, 409)
  assert.match(JSON.stringify(problem) + problem.message, /too early/)
  assert.equal((await task()).state, 'CREATED')

  const changed = camunda.updateUserTask({ userTaskKey, changeset: { priority: 9 } })
  await listen('listen-updating')
  await changed
  assert.equal((await task()).priority, 9)

  const done = camunda.completeUserTask({ userTaskKey, variables: { ok: true } })
  await listen('listen-completing-1')
  await listen('listen-completing-2')
  await done
  const instance = await camunda.getProcessInstance({ processInstanceKey }, NOW)
  assert.equal(instance.state, 'COMPLETED')
})

test('decisions are found and evaluated', async () => {
  await deploy('decision-requirements.dmn')
  const filter = { decisionRequirementsId: 'requirements-drg', isLatestVersion: true }
  const found = await camunda.searchDecisionDefinitions({ filter }, NOW)
  assert.ok(found.page.totalItems > 1)
  const [{ decisionDefinitionKey, decisionDefinitionId }] = found.items
  const evaluated = await camunda.evaluateDecision({ decisionDefinitionKey, variables: {} })
  assert.equal(evaluated.decisionDefinitionId, decisionDefinitionId)
  const xml = await camunda.getDecisionDefinitionXml({ decisionDefinitionKey }, NOW)
  assert.match(xml, /requirements-drg/)
})

test('an instance is changed, cancelled, and its definition deleted', async () => {
  const deployed = await deploy('ten-tasks.bpmn')
  const { processDefinitionKey } = deployed.deployments[0].processDefinition
  const { processInstanceKey } = await start('ten-tasks')
  await camunda.createElementInstanceVariables({
    elementInstanceKey: processInstanceKey,
    variables: { set: true },
  })
  const before = await camunda.searchElementInstances(
    { filter: { processInstanceKey, state: 'ACTIVE', type: 'SERVICE_TASK' } },
    NOW,
  )
  const [{ elementId, elementInstanceKey }] = before.items
  await camunda.modifyProcessInstance({
    processInstanceKey,
    activateInstructions: [{ elementId }],
    terminateInstructions: [{ elementInstanceKey }],
  })
  await camunda.cancelProcessInstance({ processInstanceKey })
  const gone = await camunda.getProcessInstance({ processInstanceKey }, NOW)
  assert.equal(gone.state, 'TERMINATED')
  const refused = await refusal(() => camunda.cancelProcessInstance({ processInstanceKey }))
  assert.equal(refused.status, 404)
  await camunda.deleteResource({ resourceKey: processDefinitionKey })
  const again = await refusal(() => start('ten-tasks'))
  assert.equal(again.status, 404)
})
