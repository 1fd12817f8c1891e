// graphile-worker: add_jobs in batches on one side, a runner with a local queue and batched
// completion on the other. With batched completion the library does not say when a job's
// completion is committed, so the pool's clients are watched: a job counts as completed when the
// statement that deletes it has been answered (autocommit, so after commit).
import pg from 'pg';
import { makeWorkerUtils, run, Logger } from 'graphile-worker';
import { serve } from './load.mjs';

const TASK = 'bench';
const quiet = new Logger(() => () => {});
const fatal = (error) => setImmediate(() => { throw error; });
const url = (server) => `postgres://postgres@127.0.0.1:${server.port}/postgres`;

function poolOf(server, max) {
  const pool = new pg.Pool({ connectionString: url(server), max });
  pool.on('error', fatal);
  pool.on('connect', (client) => client.on('error', fatal));
  return pool;
}

export const CREATE_BATCH_MAX = 256;
export const ENQUEUE_BATCH = 1024;

export async function prepare(server) {
  const pool = poolOf(server, 1);
  const utils = await makeWorkerUtils({ pgPool: pool, logger: quiet });
  await utils.migrate();
  await utils.release();
  await pool.end();
}

export async function producer(server) {
  const utils = await makeWorkerUtils({ pgPool: poolOf(server, 4), logger: quiet });
  return (payloads) =>
    utils.addJobs(payloads.map((p) => ({ identifier: TASK, payload: { p }, maxAttempts: 1 })));
}

export async function worker(server, inFlight, on) {
  const payloads = new Map();
  watchCompletions((id) => {
    on.completed(payloads.get(id));
    payloads.delete(id);
  });
  const concurrency = Number(process.env.BENCH_CONCURRENCY ?? 24);
  await run({
    pgPool: poolOf(server, 8),
    logger: quiet,
    noHandleSignals: true,
    taskList: {
      [TASK]: (payload, helpers) => {
        payloads.set(String(helpers.job.id), payload.p);
        on.leased(payload.p);
      },
    },
    preset: {
      worker: {
        concurrentJobs: concurrency,
        localQueue: { size: Number(process.env.BENCH_LOCAL_QUEUE ?? inFlight) },
        completeJobBatchDelay: Number(process.env.BENCH_COMPLETE_DELAY ?? 0),
        failJobBatchDelay: 0,
      },
    },
  });
}

function watchCompletions(completed) {
  const query = pg.Client.prototype.query;
  pg.Client.prototype.query = function watched(config, ...rest) {
    const answer = query.call(this, config, ...rest);
    if (typeof config?.text === 'string' && /^\s*delete from .*_private_jobs/.test(config.text)) {
      return answer.then((result) => {
        for (const id of [config.values[0]].flat()) completed(String(id));
        return result;
      });
    }
    return answer;
  };
}

export async function held(server) {
  const client = new pg.Client({ connectionString: url(server) });
  await client.connect();
  const { rows } = await client.query('select count(*)::int as n from graphile_worker._private_jobs');
  await client.end();
  return rows[0].n;
}

serve({ CREATE_BATCH_MAX, ENQUEUE_BATCH, prepare, producer, worker, held }, import.meta.url);
