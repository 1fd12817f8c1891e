// BullMQ: addBulk on one side, Workers with concurrency on the other. A job counts as completed
// at the `completed` event, which BullMQ emits when Redis has answered the move to finished.
import { Queue, Worker } from 'bullmq';
import { serve } from './load.mjs';

const QUEUE = 'bench';
const LOCK_MS = 600_000;
const connection = (server) => ({ host: '127.0.0.1', port: server.port });

export const CREATE_BATCH_MAX = 256;
export const ENQUEUE_BATCH = 1024;

export async function prepare() {}

export async function producer(server) {
  const queue = new Queue(QUEUE, { connection: connection(server) });
  await queue.waitUntilReady();
  const opts = { removeOnComplete: true, removeOnFail: true };
  return (payloads) => queue.addBulk(payloads.map((p) => ({ name: 'b', data: { p }, opts })));
}

export async function worker(server, inFlight, on) {
  const worker = new Worker(QUEUE, async (job) => on.leased(job.data.p), {
    connection: { ...connection(server), maxRetriesPerRequest: null },
    concurrency: Number(process.env.BENCH_CONCURRENCY ?? Math.min(inFlight, 64)),
    lockDuration: LOCK_MS,
    stalledInterval: LOCK_MS,
  });
  worker.on('completed', (job) => on.completed(job.data.p));
  worker.on('error', (error) => setImmediate(() => { throw error; }));
  await worker.waitUntilReady();
}

export async function held(server) {
  const queue = new Queue(QUEUE, { connection: connection(server) });
  const counts = await queue.getJobCounts('wait', 'active', 'delayed', 'failed', 'completed');
  await queue.close();
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

serve({ CREATE_BATCH_MAX, ENQUEUE_BATCH, prepare, producer, worker, held }, import.meta.url);
