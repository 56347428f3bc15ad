import { createRxDatabase, type RxCollection } from 'rxdb';
import { getRxStorageMemory } from 'rxdb/plugins/storage-memory';
import { describe, expect, it } from 'vitest';
import { newId, replicateBsvc } from '../../world/client-rxdb.js';
import { createClient } from '../../world/client.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { eventually } from '../../helpers/eventually.js';
import { openTestNetwork } from '../../helpers/offline-fetch.js';
import { openRandom, type Random } from '../../helpers/random.js';
import { runs } from '../../helpers/runs.js';
import { openSeed } from '../../helpers/seed.js';
import { use, useTestApp } from '../../helpers/use.js';

interface Note {
  _id: string;
  of: string;
  a?: number;
  b?: number;
}

const RUNS = runs(12);
const STEPS = 40;
const seed = openSeed('RxDB interleavings');

const test = await useTestApp();
const shop = await buildProject(test.app);
await buildCollection(test.app, shop.project, {
  name: 'notes',
  fields: [
    { name: 'of', type: 'String', required: true },
    ...['a', 'b', 'defaulted'].map((name) => ({
      name,
      type: 'Number' as const,
      default: name.length > 1 ? 7 : undefined,
    })),
  ],
});
const server = createClient({ url: test.url, key: shop.secret });

/** A client that goes offline, loses answers and is started again with what it had stored. */
async function openDevice(of: string, random: Random) {
  const db = await createRxDatabase({ name: newId(), storage: getRxStorageMemory(), multiInstance: false });
  const schema = {
    ...{ version: 0, primaryKey: '_id', type: 'object' },
    properties: { _id: { type: 'string', maxLength: 24 }, a: { type: 'number' }, b: { type: 'number' } },
  };
  await db.addCollections({ notes: { schema: schema as never } });
  const notes = db.notes as RxCollection<Note>;
  const network = openTestNetwork();
  network.losesAnswer = () => random.chance(0.15);
  const start = () =>
    replicateBsvc({
      client: createClient({ url: test.url, key: shop.secret, fetch: network.fetch, retries: 0 }),
      ...{ name: 'notes', filter: { of }, collection: notes, retryTime: 20 },
    });
  let replication = start();
  use({ close: () => db.remove() });
  return {
    notes,
    network,
    async restart() {
      await replication.cancel();
      replication = start();
    },
  };
}

type Device = Awaited<ReturnType<typeof openDevice>>;

async function step({ notes, network, restart }: Device, of: string, random: Random, n: number): Promise<void> {
  const all = await notes.find().exec();
  const note = all.length > 0 ? random.pick(all.sort((a, b) => (a._id < b._id ? -1 : 1))) : undefined;
  const what = random.below(20);
  if (what === 0) network.isOn = !network.isOn;
  else if (what === 1) await restart();
  else if (what < 5 || !note) await notes.insert({ _id: newId(), of, a: n });
  else if (what < 7) await note.incrementalRemove();
  else if (what < 17) await note.incrementalPatch({ [random.pick(['a', 'b'])]: n });
  else await new Promise((resolve) => setTimeout(resolve, random.below(30)));
}

describe('two offline clients of RxDB', () => {
  it.each(Array.from({ length: RUNS }, (_, run) => run))(
    'agree with the service after any interleaving of changes, removals, outages and restarts, run %i',
    async (run) => {
      const random = openRandom(seed + run);
      const of = `run ${run}`;
      const devices = [await openDevice(of, random.fork('one')), await openDevice(of, random.fork('other'))];
      for (let n = 0; n < STEPS; n++) {
        // The service is a third writer now and then.
        if (random.chance(0.1)) {
          const { items } = await server.collection('notes').list({ filter: { of } });
          const notes = server.collection('notes');
          // Removed by a client meanwhile.
          if (items.length > 0) await notes.update(random.pick(items)._id, { b: -n }).catch(() => undefined);
        }
        await step(random.pick(devices), of, random, n);
      }
      await server.collection('notes').insert({ of, a: -1 });
      for (const { network } of devices) {
        network.isOn = true;
        network.losesAnswer = () => false;
      }
      const shown = async (documents: readonly object[]): Promise<string> =>
        JSON.stringify(documents.map((document) => JSON.stringify(Object.entries(document).sort())).sort());
      const states = async (): Promise<string[]> =>
        Promise.all([
          shown((await server.collection('notes').list({ filter: { of }, limit: 1000 })).items),
          ...devices.map(async ({ notes }) => shown((await notes.find().exec()).map((note) => note.toJSON()))),
        ]);
      let last: string[] = [];
      await eventually(`all agree, seed ${seed}, run ${run}`, async () => {
        last = await states();
        return new Set(last).size === 1;
      }).catch((error: Error) => {
        throw new Error(`${error.message}\n${last.join('\n')}`);
      });
      expect(last[0]).toContain('-1');
    },
  );
});
