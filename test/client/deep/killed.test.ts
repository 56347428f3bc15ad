import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient } from '../../world/client.js';
import { eventually } from '../../helpers/eventually.js';
import { findFreePort } from '../../helpers/listen.js';
import { runOrThrow, startService, type RunningService } from '../../helpers/run-binary.js';
import { openTempDir, type TempDir } from '../../helpers/temp-dir.js';

let dir: TempDir;
let settings: Record<string, string>;
let secret: string;
let service: RunningService;
let port: number;

const start = async (): Promise<void> => {
  service = await startService(['serve', '--port', String(port)], settings);
};

beforeAll(async () => {
  dir = await openTempDir();
  settings = { BSVC_DATA_DIR: join(dir.path, 'data'), BSVC_LOG_LEVEL: 'warn' };
  port = await findFreePort();
  const made = JSON.parse(await runOrThrow(['project', 'create', 'shop', '--json'], settings)) as {
    keys: { secret: string };
  };
  ({ secret } = made.keys);
  await runOrThrow(['collection', 'add', 'posts', '--project', 'shop', '--flexible'], settings);
  await start();
});
afterAll(async () => {
  await service.stop();
  await dir.remove();
});

describe('a client whose server is killed', () => {
  it('writes each document once, through the restart, and its list shows them', async () => {
    const api = createClient({ url: `http://127.0.0.1:${port}`, key: secret, retries: 12 });
    const posts = api.collection('posts');
    let shown = 0;
    const stop = posts.follow.set({}, (list) => (shown = list.length));
    const total = 120;
    let killing: Promise<void> | undefined;
    for (let n = 0; n < total; n += 4) {
      const group = [0, 1, 2, 3].map((more) => posts.insert({ n: n + more }));
      // In the middle of requests, which it may have done or not.
      if (n === 60) killing = service.stop('SIGKILL').then(start);
      await Promise.all(group);
    }
    await killing;
    const counts = await posts.aggregate<{ _id: number; count: number }>([
      { $group: { _id: '$n', count: { $sum: 1 } } },
      { $sort: { _id: 1 } },
    ]);
    expect(counts).toEqual(Array.from({ length: total }, (_, n) => ({ _id: n, count: 1 })));
    await eventually('the list shows all', () => shown === total);
    stop();
  });
});
