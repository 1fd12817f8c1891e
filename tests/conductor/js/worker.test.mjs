// Workers of the JavaScript SDK, unchanged.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  NonRetryableException, TaskHandler, getTaskContext, simpleTask, worker,
} from '@io-orkes/conductor-javascript'
import {
  client, define, ended, executor, metadata, newest, silent, start, states, tasks, unique, work,
} from './sdk.mjs'

async function known(name, more = {}) {
  await metadata.registerTask({
    name, retryCount: 0, retryDelaySeconds: 0, timeoutSeconds: 0, responseTimeoutSeconds: 60, totalTimeoutSeconds: 0,
    ...more,
  })
  return name
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

test('a worker that knows better than to try again', async () => {
  const task = await known(unique('final'), { retryCount: 5 })
  const name = await define(unique('flow'), [simpleTask('t', task, {})])
  let calls = 0
  work({
    taskDefName: task,
    execute: async () => {
      calls += 1
      throw new NonRetryableException('never')
    },
  })
  const run = await ended(await start(name))
  assert.deepEqual([run.status, states(run), calls], ['FAILED', [['t', 'FAILED_WITH_TERMINAL_ERROR']], 1])
  assert.match(run.reasonForIncompletion, /never/)
})

test('a worker puts its task back, and gets it again', async () => {
  const task = await known(unique('steps'))
  const name = await define(unique('flow'), [simpleTask('t', task, {})])
  const polls = []
  work({
    taskDefName: task,
    execute: async (given) => {
      polls.push(getTaskContext().getPollCount())
      if (polls.length < 3) {
        return { status: 'IN_PROGRESS', callbackAfterSeconds: 0, outputData: { step: polls.length } }
      }
      return { status: 'COMPLETED', outputData: { before: given.outputData.step } }
    },
  })
  const run = await ended(await start(name))
  assert.deepEqual([run.status, run.output, polls], ['COMPLETED', { before: 2 }, [1, 2, 3]])
})

test('what a worker says while it works is kept', async () => {
  const task = await known(unique('talks'))
  const name = await define(unique('flow'), [simpleTask('t', task, {})])
  work({
    taskDefName: task,
    execute: async () => {
      const context = getTaskContext()
      context.addLog('first')
      context.addLog('second')
      context.setOutput({ noted: true })
      return { status: 'COMPLETED', outputData: { done: true } }
    },
  })
  const run = await ended(await start(name))
  assert.deepEqual(run.output, { noted: true, done: true })
  const lines = await tasks.getTaskLogs(newest(run, 't').taskId)
  assert.deepEqual(lines.map((line) => line.log), ['first', 'second'])
})

test('a worker of a domain gets the tasks of it', async () => {
  const task = await known(unique('domained'))
  const name = await define(unique('flow'), [simpleTask('t', task, {})])
  const seen = []
  const execute = (by) => async (given) => {
    seen.push([by, given.domain])
    return { status: 'COMPLETED', outputData: {} }
  }
  work({ taskDefName: task, domain: 'blue', execute: execute('blue') })
  work({ taskDefName: task, execute: execute('plain') })
  await ended(await start(name, {}, { taskToDomain: { [task]: 'blue' } }))
  await ended(await start(name))
  assert.deepEqual(seen, [['blue', 'blue'], ['plain', undefined]])
})

test('a slow worker keeps its task alive', async () => {
  const task = await known(unique('slow'), { responseTimeoutSeconds: 2 })
  const name = await define(unique('flow'), [simpleTask('t', task, {}), simpleTask('after', task, {})])
  const slow = new Set()
  // Longer than the task may be without an answer; the SDK prolongs it, but none that is shorter than 2 s.
  work({
    taskDefName: task,
    leaseExtendEnabled: true,
    execute: async (given) => {
      if (given.referenceTaskName === 't') {
        slow.add(given.taskId)
        await new Promise((done) => setTimeout(done, 2_400))
      }
      return { status: 'COMPLETED', outputData: {} }
    },
  })
  const run = await ended(await start(name))
  assert.deepEqual(states(run), [['t', 'COMPLETED'], ['after', 'COMPLETED']])
  assert.equal(slow.size, 1)
})

test('many tasks at once, no more than the limit', async () => {
  const task = await known(unique('limited'), { concurrentExecLimit: 2 })
  const name = await define(unique('flow'), [simpleTask('t', task, {})])
  let [now, most] = [0, 0]
  work({
    taskDefName: task,
    concurrency: 10,
    execute: async () => {
      now += 1
      most = Math.max(most, now)
      await new Promise((done) => setTimeout(done, 30))
      now -= 1
      return { status: 'COMPLETED', outputData: {} }
    },
  })
  const runs = await Promise.all(Array.from({ length: 8 }, async () => ended(await start(name))))
  assert.deepEqual([...new Set(runs.map((run) => run.status))], ['COMPLETED'])
  assert.equal(most, 2)
})

test('workers that register what they do', async () => {
  const task = unique('decorated')
  class Workers {
    async double(given) {
      return { status: 'COMPLETED', outputData: { n: given.inputData.n * 2 } }
    }
  }
  worker({
    taskDefName: task, registerTaskDef: true, overwriteTaskDef: false, pollInterval: 20,
    taskDef: { retryCount: 7, timeoutSeconds: 60, responseTimeoutSeconds: 30, totalTimeoutSeconds: 0 },
  })(Workers.prototype, 'double', Object.getOwnPropertyDescriptor(Workers.prototype, 'double'))
  const handler = new TaskHandler({ client, scanForDecorated: true, logger: silent })
  await handler.startWorkers()
  try {
    assert.equal((await metadata.getTask(task)).retryCount, 7)
    const name = await define(unique('flow'), [simpleTask('t', task, { n: '${workflow.input.n}' })])
    assert.deepEqual((await ended(await start(name, { n: 21 }))).output, { n: 42 })
  } finally {
    await handler.stopWorkers()
  }
})
