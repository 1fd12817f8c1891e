// What scenarios share: a client, jobs made over our own API until processes make them, and waiting.
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

/** A job as a process would make it; answers its key. */
export async function createJob(type, { variables = {}, headers, ...job } = {}) {
  const queue = `zeebe/${type}`
  const path = `/queues/${encodeURIComponent(queue)}?tenant=${encodeURIComponent('<default>')}`
  await call('PUT', path, { order: 'creation' })
  const options = headers === undefined ? undefined : { headers }
  const made = await call('POST', '/jobs', {
    tenant: '<default>',
    queue,
    type,
    payload: variables,
    options,
    ...job,
  })
  return String(made.key)
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
