import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import autocannon from 'autocannon';
import { COMMON, type Case } from './http-cases.js';
import { service } from './http-servers.js';

/**
 * The operations of the table, with the KiB that each allocated when the row was last set, beside other tests, where V8
 * compiles later. Alone they are 12.6, 43.9, 32.8 and 32.7.
 */
export const ALLOCATED: Readonly<Record<string, number>> = {
  'get by id': 13.3,
  'list of 20': 46,
  create: 35,
  'update one field': 34,
};

const DOCUMENTS = 2_000;
const CONNECTIONS = 8;
/** Until V8 has compiled what it will: what it interprets allocates more. */
const WARM = 15_000;
const COUNTED = 10_000;
/** A small young generation: what is allocated since the last collection is not counted. */
const FLAGS = ['--trace-gc-nvp', '--max-semi-space-size=1'];

/**
 * The KiB that a request of each operation allocates in the process of the service, threads included, by V8's account
 * of its collections: the same within a few percent whatever else the machine does.
 */
export async function measureAllocated(folder: string, checkout?: string): Promise<Map<string, number>> {
  const server = await service(folder, DOCUMENTS, checkout, FLAGS);
  const measured = new Map<string, number>();
  for (const one of COMMON.filter(({ name }) => name in ALLOCATED)) {
    const running = await server.start();
    const requests = one.requests(running.world);
    try {
      await shoot(running.url, requests, WARM);
      const before = allocatedSoFar(folder);
      await shoot(running.url, requests, COUNTED);
      measured.set(one.name, (allocatedSoFar(folder) - before) / COUNTED / 1024);
    } finally {
      await running.stop();
    }
  }
  return measured;
}

/** Sends as many requests as asked for; throws if one fails. */
export async function shoot(url: string, requests: ReturnType<Case['requests']>, amount: number): Promise<void> {
  const seen = await autocannon({ url, connections: CONNECTIONS, amount, requests });
  if (seen.non2xx + seen.errors > 0) throw new Error(`${seen.non2xx + seen.errors} of ${amount} requests failed`);
}

function allocatedSoFar(folder: string): number {
  const log = readFileSync(join(folder, 'log'), 'latin1');
  return [...log.matchAll(/ allocated=(\d+)/g)].reduce((sum, [, bytes]) => sum + Number(bytes), 0);
}
