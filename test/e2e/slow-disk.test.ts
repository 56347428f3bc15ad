import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient, type Client, type UntypedProject } from '../world/client.js';
import { eventually } from '../helpers/eventually.js';
import { runOrThrow, startService, type RunningService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';

const dir = await openTempDir();
const library = join(dir.path, 'hold-syncs.so');
const source = join(import.meta.dirname, '../../src/engine/test/hold-syncs.c');
const compiled = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'], { encoding: 'utf8' });
const canHold = process.platform === 'linux' && compiled.status === 0;
const hold = join(dir.path, 'hold');
const settings = {
  BSVC_DATA_DIR: join(dir.path, 'data'),
  BSVC_LOG_LEVEL: 'warn',
  ...{ LD_PRELOAD: library, HOLD_SYNCS: hold },
};
afterAll(() => dir.remove());

describe.skipIf(!canHold)('a disk that does not come back from a sync', () => {
  let secret: string;
  beforeAll(async () => {
    const made = await runOrThrow(['project', 'create', 'shop', '--json'], settings);
    ({ secret } = (JSON.parse(made) as { keys: { secret: string } }).keys);
    await runOrThrow(['collection', 'add', 'posts', '--project', 'shop', '--flexible'], settings);
  });

  it.each([1, 2])('holds writes back, and no reads, in %i processes', async (processes) => {
    const service: RunningService = await startService(
      ['serve', '--port', '0', '--processes', String(processes)],
      settings,
    );
    // A connection each, so that both processes are asked.
    const clients = Array.from({ length: 8 }, () => createClient({ url: service.ready.url, key: secret }));
    const posts = (of: Client<UntypedProject>) => of.collection('posts');
    const { _id } = await posts(clients[0]!).insert({ processes });
    writeFileSync(hold, '');
    let answered = 0;
    const writes = clients.map((each) =>
      posts(each)
        .insert({ processes })
        .then(() => answered++),
    );
    await eventually('the writes have begun', async () => (await posts(clients[0]!).count({ processes })) > 1);
    for (let n = 0; n < 25; n++) {
      const found = await Promise.all(clients.map((each) => posts(each).get(_id)));
      expect(found.every((document) => document._id === _id)).toBe(true);
    }
    expect(answered).toBe(0);
    rmSync(hold);
    await Promise.all(writes);
    expect(await posts(clients[0]!).count({ processes })).toBe(9);
    expect(await service.stop()).toBe(0);
  });
});
