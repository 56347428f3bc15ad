import { Pool } from 'undici';
import { threadMicros } from '../process-cost.js';
import { withFeedService } from './service.js';
import { median } from './write-cost.js';

const DOCUMENTS = 200;
const REQUESTS = 400;
const CONNECTIONS = 16;
const WARM_UPS = 8;
const ROUNDS = 16;
/** One start alone is off by some per cent, to one side or the other. */
const STARTS = 6;

const COLLECTIONS = ['unlogged', 'items'] as const;

/** Microseconds of processor time of one PATCH, without a log and with one; how much more the log is, by pairs. */
export interface RequestFigures {
  without: number;
  with: number;
  share: number;
}

/** What a log costs a request that writes, with nobody listening; limits and access log on, as users run it. */
export async function measureRequests(): Promise<RequestFigures> {
  const starts: RequestFigures[] = [];
  for (let start = 0; start < STARTS; start++) {
    // Who comes first changes, so that what the other leaves behind is shared.
    starts.push(await measureStart(start % 2 === 0 ? COLLECTIONS : COLLECTIONS.toReversed()));
  }
  const mean = (figure: keyof RequestFigures): number =>
    starts.reduce((sum, figures) => sum + figures[figure], 0) / STARTS;
  return { without: mean('without'), with: mean('with'), share: mean('share') };
}

function measureStart(names: readonly (typeof COLLECTIONS)[number][]): Promise<RequestFigures> {
  return withFeedService(1, async ({ secret, env, start }) => {
    env.BSVC_LOG_LEVEL = 'info';
    env.BSVC_RATE_LIMIT = '10000000/15m';
    const service = await start();
    const pid = service.process.pid!;
    const { url } = service.ready;
    const headers = { 'x-api-key': secret, 'content-type': 'application/json' };
    const paths = new Map<string, string[]>();
    for (const name of names) paths.set(name, await fill(`${url}/api/data/${name}`, headers));

    const pool = new Pool(url, { connections: CONNECTIONS });
    const costs = { unlogged: [] as number[], items: [] as number[] };
    for (let round = -WARM_UPS; round < ROUNDS; round++) {
      for (const name of round % 2 === 0 ? names : names.toReversed()) {
        const before = threadMicros(pid);
        await patchAll(pool, headers, paths.get(name)!, round);
        if (round >= 0) costs[name].push((threadMicros(pid) - before) / REQUESTS);
      }
    }
    await pool.close();
    const { unlogged, items } = costs;
    const share = median(items.map((micros, round) => micros / unlogged[round]!)) - 1;
    return { without: median(unlogged), with: median(items), share };
  });
}

/** `REQUESTS` writes, a fixed number of them at a time. */
async function patchAll(
  pool: Pool,
  headers: Record<string, string>,
  paths: readonly string[],
  round: number,
): Promise<void> {
  let next = 0;
  const writer = async (): Promise<void> => {
    for (let at = next++; at < REQUESTS; at = next++) {
      const body = JSON.stringify({ n: at + round });
      const reply = await pool.request({ method: 'PATCH', path: paths[at % paths.length]!, headers, body });
      if (reply.statusCode !== 200) throw new Error(`a write was answered ${reply.statusCode}`);
      await reply.body.dump();
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, writer));
}

async function fill(address: string, headers: Record<string, string>): Promise<string[]> {
  const paths: string[] = [];
  for (let n = 0; n < DOCUMENTS; n++) {
    const body = JSON.stringify({ title: `document ${n}`, state: 'open', tags: ['one', 'two'], n });
    const reply = await fetch(address, { method: 'POST', headers, body });
    if (reply.status !== 201) throw new Error(`a document was answered ${reply.status}`);
    const { _id } = (await reply.json()) as { _id: string };
    paths.push(new URL(`${address}/${_id}`).pathname);
  }
  return paths;
}
