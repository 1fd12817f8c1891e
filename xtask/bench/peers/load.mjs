// The load shapes of `xtask/src/bench/measure.rs` for the peers whose client is Node, and the
// proof that each job ran exactly once. One line of JSON in (the shape), one out (the figures).
//
// One thread produces and four threads work, each with its own client and connections; they share
// the counters below, so nothing is sent between them. A peer's `peer.mjs` exports
//   prepare(server), producer(server) -> add(payloads), worker(server, inFlight, on), held(server)
// where `on.leased(payload)` and `on.completed(payload)` tell the run what became of a job.
import { createInterface } from 'node:readline';
import { Worker, isMainThread, threadId, workerData } from 'node:worker_threads';
import { setTimeout as sleep } from 'node:timers/promises';

const PAYLOAD_BYTES = 200;
const WORKERS = 4;
// Rounds of creates under way at once where the shape has no schedule.
const PRODUCERS = 2;
const UNACKNOWLEDGED_MAX = 8192;
const JOBS_MAX = 1 << 22;
const DRAIN_MAX_MS = 60_000;
const AFTERMATH_MS = 200;
// Until then the threads connect; the clock starts afterwards.
const START_MS = 500;

const [ISSUED, CREATED, COMPLETED, ENDING, FREED, FOREIGN] = [0, 1, 2, 3, 4, 5];

export const payloadOf = (job) => job.toString(16).padStart(16, '0').padEnd(PAYLOAD_BYTES, '.');
const jobOf = (payload) =>
  payload.length === PAYLOAD_BYTES ? Number.parseInt(payload.slice(0, 16), 16) : NaN;
const nowMs = () => {
  const [seconds, nanos] = process.hrtime();
  return seconds * 1e3 + nanos / 1e6;
};

class Run {
  constructor(shape, shared) {
    this.shape = shape;
    this.counters = new Int32Array(shared.counters);
    this.seen = new Uint8Array(shared.seen);
    this.pickup = new Float32Array(shared.pickup);
    this.started = shared.started;
  }

  static shared() {
    return {
      counters: new SharedArrayBuffer(4 * 8),
      seen: new SharedArrayBuffer(JOBS_MAX),
      pickup: new SharedArrayBuffer(4 * JOBS_MAX),
      started: nowMs() + START_MS,
    };
  }

  get(counter) {
    return Atomics.load(this.counters, counter);
  }

  elapsed() {
    return nowMs() - this.started;
  }

  // Numbers of jobs to create as [from, to), or null at the end. Only one thread calls this.
  async take(atLeast, atMost) {
    for (;;) {
      const issued = this.get(ISSUED);
      if (this.get(ENDING) || issued >= JOBS_MAX) return null;
      const freed = this.get(FREED);
      let room;
      if (this.shape.load === 'open') {
        const due = Math.floor((this.elapsed() * this.shape.per_s) / 1e3) + 1;
        room = due - issued;
        if (room <= 0) {
          // Timers have whole milliseconds; the rest is slept in place. No create is under way
          // on this thread then, so nothing else is held up.
          const left = (issued * 1e3) / this.shape.per_s - this.elapsed();
          if (left > 2) await sleep(left - 1.5);
          else if (left > 0) Atomics.wait(this.counters, FOREIGN + 1, 0, left);
          continue;
        }
      } else {
        const closed = this.shape.load === 'closed';
        const open = issued - this.get(closed ? COMPLETED : CREATED);
        room = (closed ? this.shape.in_flight : UNACKNOWLEDGED_MAX) - open;
        if (room < atLeast) {
          const wait = Atomics.waitAsync(this.counters, FREED, freed, 100);
          if (wait.async) await wait.value;
          continue;
        }
      }
      const end = Math.min(issued + Math.min(room, atMost), JOBS_MAX);
      Atomics.store(this.counters, ISSUED, end);
      return [issued, end];
    }
  }

  created([from, to]) {
    for (let job = from; job < to; job += 1) Atomics.add(this.seen, job, 0x01);
    Atomics.add(this.counters, CREATED, to - from);
    this.wake();
  }

  leased(payload) {
    if (this.shape.load !== 'open') return;
    const job = jobOf(payload);
    const due = (job * 1e3) / this.shape.per_s;
    const { warmup_ms: warmup, window_ms: window } = this.shape;
    // Zero means "not measured", and no pickup takes no time.
    if (due >= warmup && due < warmup + window) this.pickup[job] = this.elapsed() - due;
  }

  completed(payload) {
    const job = jobOf(payload);
    if (job >= 0 && job < JOBS_MAX) Atomics.add(this.seen, job, 0x10);
    else Atomics.add(this.counters, FOREIGN, 1);
    Atomics.add(this.counters, COMPLETED, 1);
    this.wake();
  }

  wake() {
    Atomics.add(this.counters, FREED, 1);
    Atomics.notify(this.counters, FREED);
  }

  async drive() {
    const counter = this.shape.load === 'enqueue' ? CREATED : COMPLETED;
    const { warmup_ms: warmup, window_ms: window } = this.shape;
    await this.until(warmup);
    const before = [this.get(counter), this.elapsed()];
    await this.until(warmup + window);
    const after = [this.get(counter), this.elapsed()];
    Atomics.store(this.counters, ENDING, 1);
    this.wake();
    const drain = nowMs() + DRAIN_MAX_MS;
    const drained = () =>
      this.get(CREATED) >= this.get(ISSUED) &&
      (counter === CREATED || this.get(COMPLETED) >= this.get(ISSUED));
    while (!drained() && nowMs() < drain) await sleep(5);
    await sleep(AFTERMATH_MS);
    return ((after[0] - before[0]) * 1e3) / (after[1] - before[1]);
  }

  async until(ms) {
    const left = ms - this.elapsed();
    if (left > 0) await sleep(left);
  }

  verdict(held) {
    const jobs = this.get(ISSUED);
    const worked = this.shape.load !== 'enqueue';
    const wanted = worked ? 0x11 : 0x01;
    let missing = 0;
    let repeated = this.get(FOREIGN);
    for (let job = 0; job < JOBS_MAX; job += 1) {
      const seen = this.seen[job];
      const want = job < jobs ? wanted : 0;
      if ((seen & 15) > (want & 15) || seen >> 4 > want >> 4) repeated += 1;
      else if (seen !== want) missing += 1;
    }
    if (missing + repeated > 0) {
      return `of ${jobs} jobs ${missing} never finished and ${repeated} came more than once`;
    }
    const expected = worked ? 0 : jobs;
    return held === expected
      ? null
      : `the system holds ${held} jobs at the end instead of ${expected}`;
  }

  percentiles() {
    const taken = this.pickup.subarray(0, this.get(ISSUED)).filter((ms) => ms > 0).sort();
    const at = (quantile) => taken[Math.max(Math.ceil(taken.length * quantile) - 1, 0)];
    return { p50: at(0.5), p99: at(0.99) };
  }
}

async function main(peer, url) {
  for await (const line of createInterface({ input: process.stdin })) {
    const { server, shape } = JSON.parse(line);
    await peer.prepare(server);
    const shared = Run.shared();
    const run = new Run(shape, shared);
    const roles = ['producer'];
    if (shape.load !== 'enqueue') for (let n = 0; n < WORKERS; n += 1) roles.push('worker');
    const failed = new Promise((_, reject) => {
      for (const role of roles) {
        const thread = new Worker(url, { workerData: { role, server, shape, shared } });
        thread.on('error', reject);
      }
    });
    const rate = await Promise.race([run.drive(), failed]);
    const inexact = run.verdict(await peer.held(server));
    const pickup = shape.load === 'open' ? run.percentiles() : null;
    answer({ rate_per_s: rate, jobs: run.get(ISSUED), inexact, pickup_ms: pickup });
  }
}

async function thread(peer) {
  const { role, server, shape, shared } = workerData;
  const run = new Run(shape, shared);
  if (role === 'worker') {
    const on = {
      leased: (payload) => run.leased(payload),
      completed: (payload) => run.completed(payload),
    };
    const inFlight = shape.load === 'closed' ? shape.in_flight / WORKERS : 256;
    await peer.worker(server, inFlight, on);
    return;
  }
  const add = await peer.producer(server);
  await run.until(0);
  const scheduled = shape.load === 'open';
  const atMost = shape.load === 'enqueue' ? peer.ENQUEUE_BATCH : peer.CREATE_BATCH_MAX;
  const atLeast = shape.load === 'enqueue' ? atMost : Math.min(atMost, shape.in_flight / 8 || 1);
  const loop = async () => {
    for (;;) {
      const jobs = await run.take(atLeast, atMost);
      if (jobs === null) return;
      const payloads = [];
      for (let job = jobs[0]; job < jobs[1]; job += 1) payloads.push(payloadOf(job));
      await add(payloads);
      run.created(jobs);
    }
  };
  await Promise.all(Array.from({ length: scheduled ? 1 : PRODUCERS }, loop));
}

function answer(object) {
  process.stdout.write(`${JSON.stringify(object)}\n`);
}

// Runs the peer's part that belongs to the calling thread.
export function serve(peer, url) {
  if (isMainThread) {
    main(peer, new URL(url)).catch((error) => {
      answer({ error: String(error?.stack ?? error).split('\n').slice(0, 3).join(' ') });
      process.exit(1);
    });
  } else {
    thread(peer).catch((error) => {
      // Thrown outside the promise so that the main thread hears it as the thread's error.
      setImmediate(() => {
        throw new Error(`thread ${threadId} (${workerData.role}): ${error?.stack ?? error}`);
      });
    });
  }
}
