// Workflows started, run, signalled and controlled through the JavaScript SDK, one and many.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simpleTask } from '@io-orkes/conductor-javascript'
import {
  define, ended, eventually, executor, fails, metadata, newest, poll, request, start, states, tasks, unique,
  untilTask,
} from './sdk.mjs'

const human = { name: 'h', taskReferenceName: 'h', type: 'HUMAN' }
const wait = (name) => ({ name, taskReferenceName: name, type: 'WAIT' })
const done = (task, status = 'COMPLETED', output = {}) =>
  executor.updateTask(task.taskId, task.workflowInstanceId, status, output)

async function failing() {
  const name = unique('fails')
  await metadata.registerTask({
    name, retryCount: 0, timeoutSeconds: 0, responseTimeoutSeconds: 60, totalTimeoutSeconds: 0,
  })
  return name
}

test('every way to start', async () => {
  const name = await define(unique('starts'), [human])
  const more = { correlationId: 'c', priority: 9 }
  const several = await Promise.all(executor.startWorkflows([
    { name, version: 1, input: { a: 1 }, ...more }, { name, version: 1, input: { a: 1 }, ...more },
  ]))
  const byName = await executor.startWorkflowByName(name, { a: 1 }, 1, 'c', 9)
  const versioned = await request('POST', `/workflow/start/${name}/1`, { query: more, body: { a: 1 } })
  for (const id of [...several, byName, versioned.data]) {
    const found = await executor.getExecution(id)
    assert.deepEqual([found.input, found.correlationId, found.priority], [{ a: 1 }, 'c', 9])
    await executor.terminate(id, 'done')
  }
  await assert.rejects(executor.startWorkflow({ name: unique('none'), input: {} }), /No such workflow defined/)
  await assert.rejects(executor.startWorkflowByName(unique('none'), {}), /No such workflow found by name/)
  const refused = await fails(400, 'POST', '/workflow', { body: { name, priority: 100, input: {} } })
  assert.match(refused.message, /between 0 and 99/)
})

test('idempotency keys', async () => {
  const name = await define(unique('once'), [human])
  const more = { idempotencyKey: unique('key') }
  const id = await start(name, {}, { ...more, idempotencyStrategy: 'FAIL' })
  await assert.rejects(start(name, {}, { ...more, idempotencyStrategy: 'FAIL' }), /Failed to start workflow/)
  assert.equal(await start(name, {}, { ...more, idempotencyStrategy: 'RETURN_EXISTING' }), id)
})

test('a workflow is run, and answered with what became of it', async () => {
  const name = await define(unique('run'), [
    { name: 'v', taskReferenceName: 'v', type: 'SET_VARIABLE', inputParameters: { a: '${workflow.input.a}' } },
    wait('w'),
  ])
  const request_ = { name, version: 1, input: { a: 5 } }
  const plain = await executor.executeWorkflow(request_, name, 1, 'r')
  assert.deepEqual([plain.status, plain.variables], ['RUNNING', { a: 5 }])
  const run = await executor.executeWorkflow(request_, name, 1, 'r', '', 5, 'DURABLE', 'BLOCKING_TASK')
  assert.deepEqual([run.responseType, run.referenceTaskName, run.status], ['BLOCKING_TASK', 'w', 'IN_PROGRESS'])
  assert.equal(run.isBlockingTask(), true)
  const said = await executor.signal(run.workflowId, 'COMPLETED', { x: 1 })
  assert.deepEqual([said.targetWorkflowStatus, said.isTargetWorkflow()], ['COMPLETED', true])
  await assert.rejects(executor.signal(run.workflowId, 'COMPLETED', {}), /Found no blocked task/)
  await executor.signalAsync(plain.workflowId, 'COMPLETED', { x: 2 })
  assert.equal((await ended(plain.workflowId)).output.taskOutput.x, 2)
  await assert.rejects(executor.executeWorkflow(request_, unique('none'), 1, 'r'), /No such workflow defined/)
})

test('pause, resume, terminate, restart', async () => {
  const [a, b] = [unique('a'), unique('b')]
  const name = await define(unique('flow'), [simpleTask(a, a, {}), simpleTask(b, b, {})])
  const id = await start(name)
  await executor.pause(id)
  assert.equal((await executor.getWorkflowStatus(id, false, false)).status, 'PAUSED')
  await done(await poll(a))
  await executor.resume(id)
  await assert.rejects(executor.resume(id), /is not PAUSED so cannot resume/)
  await poll(b)
  await assert.rejects(executor.restart(id, false), /Failed to restart/)
  await executor.terminate(id, 'enough')
  const over = await ended(id)
  assert.deepEqual([over.status, over.reasonForIncompletion, states(over)[1][1]], ['TERMINATED', 'enough', 'CANCELED'])
  await executor.restart(id, true)
  await done(await poll(a))
  await done(await poll(b), 'COMPLETED', { r: 1 })
  assert.deepEqual((await ended(id)).output, { r: 1 })
  await assert.rejects(executor.terminate(id, 'late'), /Cannot terminate a COMPLETED workflow/)
  await assert.rejects(executor.pause(id), /has ended, status cannot be updated/)
})

test('retry, rerun, go back, skip', async () => {
  const [a, b] = [unique('a'), await failing()]
  const name = await define(unique('flow'), [simpleTask('a', a, {}), simpleTask('b', b, {}), human])
  const id = await start(name)
  await executor.skipTasksFromWorkflow(id, 'h', { taskOutput: { skipped: true } })
  await assert.rejects(executor.retry(id, false), /Workflow is still running/)
  const first = await poll(a)
  await done(first, 'COMPLETED', { n: 1 })
  await done(await poll(b), 'FAILED')
  assert.equal((await ended(id)).status, 'FAILED')
  await executor.retry(id, true)
  await done(await poll(b))
  const over = await ended(id)
  assert.deepEqual(states(over).sort(), [['a', 'COMPLETED'], ['b', 'COMPLETED'], ['b', 'FAILED'], ['h', 'SKIPPED']])
  assert.deepEqual(newest(over, 'h').outputData, { skipped: true })
  await assert.rejects(executor.retry(id, false), /no retryable tasks/)
  assert.equal(await executor.reRun(id, { reRunFromTaskId: first.taskId, taskInput: { again: 1 } }), id)
  const again = await poll(a)
  assert.deepEqual(again.inputData, { again: 1 })
  await executor.terminate(id, 'enough')
  await assert.rejects(executor.reRun(id, { reRunFromTaskId: 'no' }), /Task no not found/)

  const noop = { name: 'n', taskReferenceName: 'n', type: 'NOOP' }
  const waiting = await start(await define(unique('flow'), [noop, wait('w'), human]))
  await untilTask(waiting, 'w')
  await tasks.updateTaskResult(waiting, 'w', 'COMPLETED', {})
  await untilTask(waiting, 'h')
  await executor.terminate(waiting, 'back')
  await executor.goBackToTask(waiting, (task) => task.referenceTaskName === 'w')
  assert.equal(newest(await untilTask(waiting, 'w'), 'h'), undefined)
})

test('variables, state, correlation, removal', async () => {
  const name = await define(unique('flow'), [wait('w'), human], { variables: { v: 0 } })
  const correlationId = unique('c')
  const id = await start(name, {}, { correlationId })
  assert.deepEqual((await executor.updateVariables(id, { v: 1 })).variables, { v: 1 })
  const run = await executor.updateState(id, {
    taskReferenceName: 'w', taskResult: { status: 'COMPLETED', outputData: { o: 1 } }, variables: { u: 2 },
  }, 'r', '', 1)
  assert.deepEqual([run.workflowId, run.variables], [id, { v: 1, u: 2 }])
  assert.deepEqual(newest(await untilTask(id, 'h'), 'w').outputData, { o: 1 })
  const found = await executor.getByCorrelationIds({ correlationIds: [correlationId], workflowNames: [name] })
  assert.deepEqual(found[correlationId].map((it) => it.workflowId), [id])
  assert.deepEqual((await executor.getWorkflowStatus(id, true, true)).variables, { v: 1, u: 2 })
  await assert.rejects(executor.deleteWorkflow(id), /Cannot archive workflow/)
  await executor.terminate(id, 'enough')
  await executor.deleteWorkflow(id)
  await assert.rejects(executor.getExecution(id), /No such workflow found by id/)
})

test('many at once', async () => {
  const name = await define(unique('many'), [human])
  const ids = await Promise.all([1, 2, 3].map(() => start(name)))
  const each = async (method, verb, more) => {
    const { data } = await request(method, `/workflow/bulk/${verb}`, { body: [...ids, 'nobody'], ...more })
    assert.deepEqual(data.bulkSuccessfulResults, ids, verb)
    assert.deepEqual(data.bulkErrorResults, { nobody: 'No such workflow found by id: nobody' }, verb)
    assert.equal(data.message, 'Bulk Request has been processed.')
  }
  await each('PUT', 'pause')
  await each('PUT', 'resume')
  await each('POST', 'terminate', { query: { reason: 'all' } })
  await each('POST', 'retry')
  await each('POST', 'terminate')
  await each('POST', 'restart', { query: { useLatestDefinitions: true } })
  for (const id of ids) assert.equal((await executor.getExecution(id)).status, 'RUNNING')
  await each('DELETE', 'terminate-remove')
  await assert.rejects(executor.getExecution(ids[0]), /No such workflow found by id/)
})

test('searches', async () => {
  const type = unique('sought')
  const name = await define(unique('flow'), [simpleTask('t', type, {})])
  const id = await start(name)
  await done(await poll(type))
  await ended(id)
  const found = await eventually(async () => {
    const { results } = await executor.search(0, 10, `workflowType = '${name}' AND status = 'COMPLETED'`, '*')
    return results.length > 0 && results
  })
  assert.deepEqual(found.map((it) => it.workflowId), [id])
  const [task] = await eventually(async () => {
    const { results } = await tasks.search(0, 10, undefined, '*', `taskType = ${type} AND status = COMPLETED`)
    return results.length > 0 && results
  })
  assert.deepEqual([task.workflowId, task.taskDefName], [id, type])
  await assert.rejects(executor.search(0, 10, 'nonsense', '*'), /nonsense/)
})

test('a workflow is tested with made-up results', async () => {
  const name = await define(unique('flow'), [simpleTask('t', unique('t'), {}), wait('w')])
  const run = await executor.testWorkflow({
    name, version: 1, input: {},
    taskRefToMockOutput: { t: [{ status: 'COMPLETED', output: { r: 1 } }], w: [{ output: {} }] },
  })
  assert.equal(run.status, 'COMPLETED')
  assert.deepEqual(newest(run, 't').outputData, { r: 1 })
})

test('tasks are read, updated by name, and talk', async () => {
  const type = unique('task')
  const id = await start(await define(unique('flow'), [simpleTask('t', type, { x: 1 }), wait('w'), human]))
  assert.deepEqual(await tasks.getQueueSizeForTask([type]), { [type]: 1 })
  const task = await poll(type)
  assert.equal((await tasks.getTask(task.taskId)).status, 'IN_PROGRESS')
  assert.deepEqual((await tasks.getTaskPollData(type)).map((it) => [it.queueName, it.workerId]), [[type, 'w']])
  await tasks.addTaskLog(task.taskId, 'a line')
  const lines = await tasks.getTaskLogs(task.taskId)
  assert.equal(lines.length, 1)
  assert.match(lines[0].log, /a line/)
  assert.equal(await tasks.updateTaskResult(id, 't', 'COMPLETED', { y: 2 }), task.taskId)
  // This method of the SDK wraps what it is given.
  assert.deepEqual((await executor.getTask(task.taskId)).outputData, { outputData: { y: 2 } })
  await untilTask(id, 'w')
  const after = await tasks.updateTaskSync(id, 'w', 'COMPLETED', { z: 3 })
  assert.deepEqual([after.workflowId, newest(after, 'w').outputData], [id, { z: 3 }])
  await untilTask(id, 'h')
  const updated = await executor.updateTaskByRefName('h', id, 'COMPLETED', { by: 'hand' })
  assert.equal(updated, newest(await ended(id), 'h').taskId)
  await assert.rejects(tasks.getTask('none'), /Task not found for taskId: none/)
  await assert.rejects(tasks.updateTaskSync(id, 'w', 'COMPLETED', {}), /Found no running task w/)
  await fails(500, 'POST', `/tasks/${id}/w/EXCELLENT`, { body: {} })
})
