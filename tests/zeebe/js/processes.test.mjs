// Processes over zeebe-node: deployed, started, awaited, told, changed, cancelled.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'

import { client, sleep, unique, until } from './windlass.mjs'

const NOT_FOUND = 5
const FAILED_PRECONDITION = 9
const INVALID_ARGUMENT = 3
const DEADLINE_EXCEEDED = 4
const ALREADY_EXISTS = 6

let zbc
before(() => { zbc = client() })
after(() => zbc.close())

/** A process of its own: ids, types and message names of the file get this ending. */
async function deploy(file, ending, names) {
  let text = readFileSync(new URL(`../processes/${file}`, import.meta.url), 'utf8')
  for (const name of names) text = text.replaceAll(`"${name}"`, `"${name}${ending}"`)
  return zbc.deployResource({ name: `${ending}-${file}`, process: Buffer.from(text) })
}

const result = (bpmnProcessId, variables = {}, more = {}) =>
  zbc.createProcessInstanceWithResult({ bpmnProcessId, variables, requestTimeout: 10_000, ...more })

const worker = (taskType, taskHandler) => zbc.createWorker({ taskType, taskHandler })

test('a process with a worker ends with what the worker brought', async () => {
  const e = unique('')
  const answer = await deploy('one-task.bpmn', e, ['one-task'])
  assert.equal(answer.deployments[0].process.version, 1)
  const works = worker(`one-task${e}`, (job) => job.complete({ sum: job.variables.a + 1 }))
  const { variables } = await result(`one-task${e}`, { a: 41 })
  assert.deepEqual(variables, { a: 41, sum: 42 })
  const some = await result(`one-task${e}`, { a: 1 }, { fetchVariables: ['sum', 'none'] })
  assert.deepEqual(some.variables, { sum: 2 })
  await works.close()
})

test('an end that does not come is a deadline', async () => {
  const e = unique('')
  await deploy('one-task.bpmn', e, ['one-task'])
  await assert.rejects(result(`one-task${e}`, {}, { requestTimeout: 300 }), { code: DEADLINE_EXCEEDED })
})

test('gateways choose', async () => {
  const e = unique('')
  await deploy('exclusive-gateway.bpmn', e, ['exclusive-gateway', 'exclusive-big', 'exclusive-other'])
  const big = worker(`exclusive-big${e}`, (job) => job.complete({ took: 'big' }))
  const other = worker(`exclusive-other${e}`, (job) => job.complete({ took: 'other' }))
  assert.equal((await result(`exclusive-gateway${e}`, { amount: 101 })).variables.took, 'big')
  assert.equal((await result(`exclusive-gateway${e}`, { amount: 1 })).variables.took, 'other')
  await Promise.all([big.close(), other.close()])
})

test('a message is waited for, buffered, and taken once', async () => {
  const e = unique('')
  await deploy('message-catch.bpmn', e, ['message-catch', 'scenario-catch'])
  const message = {
    name: `scenario-catch${e}`,
    correlationKey: 'k',
    timeToLive: 60_000,
    messageId: 'id',
    variables: { p: 1 },
  }
  await zbc.publishMessage(message)
  await assert.rejects(zbc.publishMessage(message), { code: ALREADY_EXISTS })
  assert.equal((await result(`message-catch${e}`, { key: 'k' })).variables.p, 1)
  const waits = result(`message-catch${e}`, { key: 'k' })
  await zbc.publishMessage({ ...message, messageId: 'other', variables: { p: 2 } })
  assert.equal((await waits).variables.p, 2)
})

test('a message starts an instance', async () => {
  const e = unique('')
  await deploy('message-start.bpmn', e, ['message-start', 'scenario-start'])
  const seen = []
  const works = worker(`message-start${e}`, (job) => {
    seen.push(job.variables)
    return job.complete()
  })
  await zbc.publishStartMessage({ name: `scenario-start${e}`, timeToLive: 0, variables: { n: 1 } })
  await until(() => seen.length === 1, 'the start')
  assert.deepEqual(seen, [{ n: 1 }])
  await works.close()
})

test('a signal starts an instance', async () => {
  const e = unique('')
  await deploy('signal-start.bpmn', e, ['signal-start', 'scenario-signal-start'])
  let seen
  const works = worker(`signal-start${e}`, (job) => {
    seen = job.variables
    return job.complete()
  })
  await zbc.broadcastSignal({ signalName: `scenario-signal-start${e}`, variables: { s: 1 } })
  await until(() => seen, 'the start')
  assert.deepEqual(seen, { s: 1 })
  await works.close()
})

test('timers pass and end what takes too long', async () => {
  const e = unique('')
  await deploy('timer-catch.bpmn', e, ['timer-catch'])
  const began = Date.now()
  await result(`timer-catch${e}`)
  assert.ok(Date.now() - began >= 450, `${Date.now() - began} ms`)
  await deploy('timer-boundary.bpmn', e, ['timer-boundary'])
  await result(`timer-boundary${e}`)
})

test('errors are caught by their code', async () => {
  const e = unique('')
  const names = ['error-boundary', 'error-fix', 'error-fix-any']
  await deploy('error-boundary.bpmn', e, names)
  const broken = worker(`error-boundary${e}`, (job) => job.error(job.variables.code, 'no'))
  const fix = worker(`error-fix${e}`, (job) => job.complete({ by: 'code' }))
  const any = worker(`error-fix-any${e}`, (job) => job.complete({ by: 'any' }))
  assert.equal((await result(`error-boundary${e}`, { code: 'BROKEN' })).variables.by, 'code')
  assert.equal((await result(`error-boundary${e}`, { code: 'OTHER' })).variables.by, 'any')
  await Promise.all([broken.close(), fix.close(), any.close()])
})

test('an instance is cancelled once', async () => {
  const e = unique('')
  await deploy('one-task.bpmn', e, ['one-task'])
  const { processInstanceKey } = await zbc.createProcessInstance({ bpmnProcessId: `one-task${e}`, variables: {} })
  await zbc.cancelProcessInstance(processInstanceKey)
  await assert.rejects(zbc.cancelProcessInstance(processInstanceKey), { code: NOT_FOUND })
  const nobody = worker(`one-task${e}`, () => assert.fail('its job is gone'))
  await sleep(200)
  await nobody.close()
})

test('variables are set and modified instances go on', async () => {
  const e = unique('')
  await deploy('one-task.bpmn', e, ['one-task'])
  const { processInstanceKey } = await zbc.createProcessInstance({ bpmnProcessId: `one-task${e}`, variables: { a: 1 } })
  await zbc.setVariables({ elementInstanceKey: processInstanceKey, variables: { b: 2 }, local: false })
  await zbc.modifyProcessInstance({
    processInstanceKey,
    activateInstructions: [
      {
        elementId: 'task',
        ancestorElementInstanceKey: '-1',
        variableInstructions: [{ scopeId: 'task', variables: { c: 3 } }],
      },
    ],
  })
  const seen = []
  const works = worker(`one-task${e}`, (job) => {
    seen.push(job.variables)
    return job.complete()
  })
  await until(() => seen.length === 2, 'both tokens')
  assert.deepEqual(seen, [{ a: 1, b: 2 }, { a: 1, b: 2, c: 3 }])
  await works.close()
})

test('decisions are evaluated', async () => {
  const decision = readFileSync(new URL('../processes/decision-unique.dmn', import.meta.url))
  await zbc.deployResource({ name: 'decision-unique.dmn', decision })
  const answer = await zbc.evaluateDecision({ decisionId: 'ship-unique', variables: { amount: 500 } })
  assert.deepEqual(JSON.parse(answer.decisionOutput), { way: 'van', fee: 0 })
  await assert.rejects(zbc.evaluateDecision({ decisionId: unique('none'), variables: {} }), { code: NOT_FOUND })
})

test('what is refused', async () => {
  const create = (more) => zbc.createProcessInstance({ variables: {}, ...more })
  await assert.rejects(create({ bpmnProcessId: unique('none') }), { code: NOT_FOUND })
  const broken = { name: 'broken.bpmn', process: Buffer.from('<broken') }
  await assert.rejects(zbc.deployResource(broken), { code: INVALID_ARGUMENT })
  const e = unique('')
  await deploy('message-start.bpmn', e, ['message-start', 'scenario-start'])
  await assert.rejects(create({ bpmnProcessId: `message-start${e}` }), { code: FAILED_PRECONDITION })
})
