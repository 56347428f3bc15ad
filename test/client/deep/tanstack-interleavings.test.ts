import { createCollection } from '@tanstack/db';
import { describe, expect, it } from 'vitest';
import { bsvcCollectionOptions, newId } from '../../world/client-tanstack.js';
import { createClient } from '../../world/client.js';
import { buildCollection, buildProject } from '../../helpers/build-project.js';
import { eventually } from '../../helpers/eventually.js';
import { openTestNetwork } from '../../helpers/offline-fetch.js';
import { openRandom, type Random } from '../../helpers/random.js';
import { openSeed } from '../../helpers/seed.js';
import { useTestApp } from '../../helpers/use.js';

const RUNS = 12;
const STEPS = 60;
const seed = openSeed('TanStack DB interleavings');

const test = await useTestApp();
const shop = await buildProject(test.app);
const fields = ['of', 'a', 'b'].map((name) => ({ name, type: 'Number' as const }));
await buildCollection(test.app, shop.project, { name: 'tasks', fields });
const server = createClient({ url: test.url, key: shop.secret });

async function openDevice(of: number, random: Random) {
  const network = openTestNetwork();
  const client = createClient({ url: test.url, key: shop.secret, fetch: network.fetch, retries: 0 });
  const tasks = createCollection(bsvcCollectionOptions({ client, name: 'tasks', filter: { of } }));
  await tasks.preload();
  network.losesAnswer = () => random.chance(0.2);
  const written: Promise<unknown>[] = [];
  return {
    network,
    tasks,
    step(n: number) {
      const ids = [...tasks.keys()].sort();
      const what = random.below(20);
      if (what === 0) network.isOn = !network.isOn;
      else if (what < 4 || ids.length === 0) write(() => tasks.insert({ _id: newId(), of, a: n }));
      else if (what < 7) write(() => tasks.delete(random.pick(ids)));
      else write(() => tasks.update(random.pick(ids), (draft) => void (draft[random.pick(['a', 'b'])] = n)));
    },
    written: () => Promise.all(written),
  };
  /** Refused or without an answer: taken back. */
  function write(change: () => { isPersisted: { promise: Promise<unknown> } }): void {
    written.push(change().isPersisted.promise.catch(() => undefined));
  }
}

describe('two clients of TanStack DB', () => {
  it.each(Array.from({ length: RUNS }, (_, run) => run))(
    'agree with the service after any interleaving of changes, removals, outages and lost answers, run %i',
    async (of) => {
      const random = openRandom(seed + of);
      const devices = [await openDevice(of, random.fork('one')), await openDevice(of, random.fork('other'))];
      for (let n = 0; n < STEPS; n++) {
        random.pick(devices).step(n);
        if (random.chance(0.5)) await new Promise((resolve) => setTimeout(resolve, random.below(20)));
      }
      await server.collection('tasks').insert({ of, a: -1 });
      for (const { network, written } of devices) {
        network.isOn = true;
        network.losesAnswer = () => false;
        await written();
      }
      // What TanStack DB adds to documents is about the client.
      const text = (documents: readonly object[]): string =>
        JSON.stringify(
          documents
            .map((document) =>
              JSON.stringify(
                Object.entries(document)
                  .filter(([name]) => !name.startsWith('$'))
                  .sort(),
              ),
            )
            .sort(),
        );
      let last: string[] = [];
      await eventually(`all agree, seed ${seed}, run ${of}`, async () => {
        const { items } = await server.collection('tasks').list({ filter: { of }, limit: 1000 });
        last = [text(items), ...devices.map(({ tasks }) => text(tasks.toArray))];
        return new Set(last).size === 1;
      }).catch((error: Error) => {
        throw new Error(`${error.message}\n${last.join('\n')}`);
      });
      expect(last[0]).toContain('-1');
      for (const { tasks } of devices) await tasks.cleanup();
    },
  );
});
