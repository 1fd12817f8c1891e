// Definitions, event handlers and schedules through the JavaScript SDK.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ConductorWorkflow, eventTask, inlineTask, joinTask, jsonJqTask, forkTask, newLoopTask, setVariableTask, simpleTask,
  subWorkflowTask, switchTask, taskDefinition, terminateTask, waitTaskDuration, waitTaskUntil, workflow,
} from '@io-orkes/conductor-javascript'
import {
  define, ended, events, eventually, executor, fails, metadata, newest, request, scheduler, start, unique, untilTask,
} from './sdk.mjs'

const noop = { name: 'n', taskReferenceName: 'n', type: 'NOOP' }

test('definitions of tasks come and go', async () => {
  const [one, two] = [unique('one'), unique('two')]
  const more = { timeoutSeconds: 60, responseTimeoutSeconds: 30, totalTimeoutSeconds: 0 }
  await metadata.registerTasks([
    { name: one, retryCount: 5, ...more },
    taskDefinition({ name: two, retryCount: 1, ...more }),
  ])
  assert.equal((await metadata.getTask(one)).retryCount, 5)
  assert.equal((await metadata.getTask(two)).timeoutSeconds, 60)
  await metadata.updateTask({ name: one, retryCount: 2, ...more })
  assert.equal((await metadata.getTask(one)).retryCount, 2)
  const names = (await metadata.getAllTaskDefs()).map((it) => it.name)
  assert.ok(names.includes(one) && names.includes(two))
  await metadata.unregisterTask(one)
  await assert.rejects(metadata.getTask(one), new RegExp(`No such taskType found by name: ${one}`))
  await assert.rejects(metadata.unregisterTask(one), /No such task definition/)
  await assert.rejects(metadata.updateTask({ name: one, ...more }), new RegExp(`No such task by name ${one}`))
  const wrong = await fails(400, 'POST', '/metadata/taskdefs', { body: [{ name: one, retryCount: -1 }] })
  assert.match(wrong.validationErrors[0].message, /retryCount: -1 must be >= 0/)
})

test('definitions of workflows come and go', async () => {
  const name = unique('flow')
  const definition = (version) => ({
    name, version, timeoutSeconds: 0, inputParameters: ['x'], outputParameters: {}, tasks: [noop],
  })
  await metadata.registerWorkflowDef(definition(1))
  await assert.rejects(metadata.registerWorkflowDef(definition(1), false), new RegExp(`${name}.1 already exists!`))
  await metadata.registerWorkflowDef(definition(2))
  assert.equal((await metadata.getWorkflowDef(name)).version, 2)
  assert.deepEqual((await metadata.getWorkflowDef(name, 1)).inputParameters, ['x'])
  const all = (await metadata.getAllWorkflowDefs()).filter((it) => it.name === name)
  assert.deepEqual(all.map((it) => it.version), [1, 2])
  await metadata.unregisterWorkflow(name, 2)
  assert.equal((await metadata.getWorkflowDef(name)).version, 1)
  await assert.rejects(metadata.getWorkflowDef(name, 2), /No such workflow found by name/)
  await assert.rejects(metadata.unregisterWorkflow(name, 2), /No such workflow definition/)
  const bulk = await request('PUT', '/metadata/workflow', { body: [definition(3)] })
  assert.deepEqual(bulk.data.bulkSuccessfulResults, [name])
  const wrong = await fails(400, 'POST', '/metadata/workflow/validate', { body: { name, tasks: [noop, noop] } })
  assert.match(wrong.validationErrors[0].message, /should be unique across tasks/)
})

test('what the builders of the SDK write is understood', async () => {
  const below = await define(unique('below'), [inlineTask('i', '$.x * 10', 'javascript')], {
    outputParameters: { y: '${workflow.input.x}0' },
  })
  const query = '[.list[] | . + 1]'
  const jq = { ...jsonJqTask('jq', query), inputParameters: { list: [1, 2], queryExpression: query } }
  const name = await define(unique('built'), [
    setVariableTask('set', { factor: 2 }),
    inlineTask('double', '(function () { return $.n * 2; })()', 'javascript'),
    { ...forkTask('fork', [jq]), forkTasks: [[jq], [waitTaskUntil('past', '2020-01-01 00:00 GMT')]] },
    joinTask('join', ['jq', 'past']),
    newLoopTask('loop', 3, [inlineTask('round', '1', 'javascript')]),
    { ...subWorkflowTask('sub', below, 1), inputParameters: { x: 4 } },
    switchTask('switch', '${workflow.input.way}', {
      end: [terminateTask('stop', 'COMPLETED', 'enough')],
    }, [eventTask('event', 'conductor', 'e')]),
    waitTaskDuration('never', '300 s'),
  ], { outputParameters: { jq: '${jq.output.result}' } })
  const run = await ended(await start(name, { way: 'end' }))
  assert.equal(run.status, 'COMPLETED', run.reasonForIncompletion)
  assert.deepEqual(run.tasks.filter((it) => it.status !== 'COMPLETED'), [])
  assert.deepEqual(newest(run, 'jq').outputData.result, [2, 3])
  assert.equal(newest(run, 'loop').outputData.iteration, 3)
  assert.equal(newest(run, 'sub').outputData.y, '40')
  assert.deepEqual(run.variables, { factor: 2 })
  assert.equal(newest(run, 'never'), undefined)
  const other = await start(name, { way: 'on' })
  assert.equal(newest(await untilTask(other, 'never'), 'event').status, 'COMPLETED')
})

test('a workflow is written, registered and run by the SDK alone', async () => {
  const flow = new ConductorWorkflow(executor, unique('fluent'), 1, 'made by hand')
    .add(setVariableTask('v', { a: '${workflow.input.a}' }))
    .fork([[inlineTask('one', '1', 'javascript')], [inlineTask('two', '2', 'javascript')]])
    .timeoutSeconds(30)
    .timeoutPolicy('TIME_OUT_WF')
    .outputParameter('a', '${workflow.variables.a}')
  await flow.register(true)
  const definition = await metadata.getWorkflowDef(flow.getName())
  assert.equal(definition.timeoutPolicy, 'TIME_OUT_WF')
  const run = await flow.execute({ a: 3 })
  assert.equal(run.status, 'COMPLETED')
  assert.deepEqual(run.output, { a: 3 })
  const id = await flow.startWorkflow({ a: 4 }, 'c', 7)
  const found = await ended(id)
  assert.deepEqual([found.output, found.correlationId, found.priority], [{ a: 4 }, 'c', 7])
  const plain = workflow(unique('plain'), [simpleTask('s', 's', {})])
  await executor.registerWorkflow(true, plain)
  assert.equal((await metadata.getWorkflowDef(plain.name)).tasks[0].type, 'SIMPLE')
})

test('event handlers come and go, and act', async () => {
  const started = await define(unique('started'), [noop])
  const publisher = unique('publisher')
  const event = `conductor:${publisher}:e`
  await define(publisher, [{
    name: 'e', taskReferenceName: 'e', type: 'EVENT', sink: 'conductor', inputParameters: { x: 7 },
  }])
  const handler = {
    name: unique('handler'), event, active: true,
    actions: [{ action: 'start_workflow', start_workflow: { name: started, input: { x: '${x}' } } }],
  }
  await assert.rejects(events.updateEventHandler(handler), /not found/)
  // The SDK's own method sends a list, as another server takes it.
  const added = await request('POST', '/event', { body: handler })
  assert.equal(added.response.status, 200)
  assert.match((await fails(409, 'POST', '/event', { body: handler })).message, /already exists/)
  assert.deepEqual((await events.getEventHandlersForEvent(event)).map((it) => it.name), [handler.name])
  assert.ok((await events.getAllEventHandlers()).some((it) => it.name === handler.name))
  assert.equal((await ended(await start(publisher))).status, 'COMPLETED')
  const found = await eventually(async () => {
    const { results } = await executor.search(0, 10, `workflowType = ${started}`, '*')
    return results[0]
  })
  assert.equal((await ended(found.workflowId)).input.x, 7)
  await events.updateEventHandler({ ...handler, active: false })
  assert.deepEqual(await events.getEventHandlersForEvent(event, true), [])
  assert.equal((await events.getEventHandlersForEvent(event, false)).length, 1)
  await events.removeEventHandler(handler.name)
  await assert.rejects(events.removeEventHandler(handler.name), /not found/)
})

test('schedules come, pause, start workflows and go', async () => {
  const flow = await define(unique('scheduled'), [noop])
  const name = unique('schedule')
  const schedule = {
    name, cronExpression: '* * * * * *', startWorkflowRequest: { name: flow, version: 1, input: { k: 1 } },
  }
  await assert.rejects(scheduler.getSchedule(name), /not found/)
  await scheduler.saveSchedule(schedule)
  assert.equal((await scheduler.getSchedule(name)).cronExpression, '* * * * * *')
  assert.deepEqual((await scheduler.getAllSchedules(flow)).map((it) => it.name), [name])
  const run = await eventually(async () => {
    const { results } = await scheduler.search(0, 10, '', '*', `scheduleName = ${name}`)
    return results.find((it) => it.state === 'EXECUTED')
  }, 'a run of the schedule')
  assert.equal((await ended(run.workflowId)).input.k, 1)
  await scheduler.pauseSchedule(name, 'later')
  const paused = await scheduler.getSchedule(name)
  assert.deepEqual([paused.paused, paused.pausedReason], [true, 'later'])
  await scheduler.resumeSchedule(name)
  assert.equal((await scheduler.getSchedule(name)).paused, false)
  await scheduler.pauseAllSchedules()
  assert.equal((await scheduler.getSchedule(name)).paused, true)
  await scheduler.resumeAllSchedules()
  assert.equal((await scheduler.getSchedule(name)).paused, false)
  await scheduler.requeueAllExecutionRecords()
  await scheduler.deleteSchedule(name)
  await assert.rejects(scheduler.getSchedule(name), /not found/)
  await assert.rejects(scheduler.pauseSchedule(name), /not found/)

  const times = await scheduler.getNextFewSchedules('0 0 9 * * ?', undefined, undefined, 3)
  assert.equal(times.length, 3)
  assert.equal(times[1] - times[0], 24 * 60 * 60 * 1_000)
  await assert.rejects(scheduler.getNextFewSchedules('nonsense'), /Invalid cron expression/)
  const wrong = await fails(400, 'POST', '/scheduler/schedules', { body: { name } })
  assert.match(wrong.validationErrors[0].message, /startWorkflowRequest cannot be null/)
})
