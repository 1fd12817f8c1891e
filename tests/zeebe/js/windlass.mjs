// What scenarios share: a client, jobs as a process makes them, and waiting.
import { ZBClient } from 'zeebe-node'

const base = process.env.WINDLASS_URL

/** A client that says nothing and tries nothing twice. */
export function client(options = {}) {
  return new ZBClient(process.env.ZEEBE_ADDRESS, {
    loglevel: 'NONE',
    retry: false,
    useTLS: false,
    ...options,
  })
}

/** A name that no other scenario uses. */
export function unique(name) {
  return `${name}-${process.pid}-${Math.random().toString(36).slice(2)}`
}

async function call(method, path, body) {
  const answer = await fetch(`${base}/windlass/v1${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return text ? JSON.parse(text) : null
}

/** A process of one task with this type and these headers. */
function oneTask(type, headers, retries) {
  const lines = Object.entries(headers).map(([key, value]) => `<z:header key="${key}" value="${value}"/>`)
  const told = lines.length ? `<z:taskHeaders>${lines.join('')}</z:taskHeaders>` : ''
  return `<b:definitions xmlns:b="http://www.omg.org/spec/BPMN/20100524/MODEL"
    xmlns:z="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="http://windlass.dev/scenarios">
  <b:process id="${type}" isExecutable="true">
    <b:startEvent id="start"/>
    <b:serviceTask id="task"><b:extensionElements>
      <z:taskDefinition type="${type}" retries="${retries}"/>${told}
    </b:extensionElements></b:serviceTask>
    <b:endEvent id="end"/>
    <b:sequenceFlow id="in" sourceRef="start" targetRef="task"/>
    <b:sequenceFlow id="out" sourceRef="task" targetRef="end"/>
  </b:process>
</b:definitions>`
}

/** A process that makes jobs of a type: deploys it. */
export async function deployTask(zbc, type, { headers = {}, retries = 3 } = {}) {
  const process = Buffer.from(oneTask(type, headers, retries))
  await zbc.deployResource({ name: `${type}.bpmn`, process })
}

/** An instance of its own that makes one job. */
export async function startTask(zbc, type, { variables = {}, ...task } = {}) {
  await deployTask(zbc, type, task)
  return zbc.createProcessInstance({ bpmnProcessId: type, variables })
}

/** The same; answers the job's key, which our own API tells, so that nobody has to take it. */
export async function createJob(zbc, type, task) {
  await startTask(zbc, type, task)
  const query = new URLSearchParams({ tenant: '<default>', queue: `zeebe/${type}` })
  const { jobs } = await call('GET', `/jobs?${query}`)
  return String(jobs[0].key)
}

/** The job as our own API shows it. */
export function jobView(key) {
  return call('GET', `/jobs/${key}`)
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** Waits until `check` answers something true, and answers that. */
export async function until(check, what = 'it', ms = 10_000) {
  const end = Date.now() + ms
  for (;;) {
    const found = await check()
    if (found) return found
    if (Date.now() > end) throw new Error(`${what} did not happen within ${ms} ms`)
    await sleep(10)
  }
}
