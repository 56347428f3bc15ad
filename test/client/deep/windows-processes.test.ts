import { join } from 'node:path';
import { expect, it } from 'vitest';
import { createClient } from '../../world/client.js';
import { eventually } from '../../helpers/eventually.js';
import { openRandom } from '../../helpers/random.js';
import { runOrThrow, startService } from '../../helpers/run-binary.js';
import { runs } from '../../helpers/runs.js';
import { openSeed } from '../../helpers/seed.js';
import { openTempDir } from '../../helpers/temp-dir.js';
import { use } from '../../helpers/use.js';

const WINDOWS = [
  { sort: '-n', limit: 5 },
  { sort: 'n', limit: 1 },
  { filter: { kind: 'a' }, sort: '-n', limit: 3 },
  { filter: { kind: 'b' }, sort: ['kind', '-n'], limit: 40 },
];

it('windows of one process are what the list is, whichever process writes', async () => {
  const random = openRandom(openSeed('windows of two processes'));
  const dir = use(await openTempDir());
  const settings = { BSVC_DATA_DIR: join(dir.path, 'data'), BSVC_LOG_LEVEL: 'warn', BSVC_DURABILITY: 'relaxed' };
  const made = await runOrThrow(['project', 'create', 'shop', '--json'], settings);
  const key = (JSON.parse(made) as { keys: { secret: string } }).keys.secret;
  await runOrThrow(['collection', 'add', 'posts', '--project', 'shop', '--flexible'], settings);
  const service = use(await startService(['serve', '--port', '0', '--processes', '2'], settings));
  const open = () => createClient({ url: service.ready.url, key }).collection('posts');
  // Streams and writes over connections of their own: each process has some of both.
  const followers = Array.from({ length: 4 }, () => WINDOWS.map((window) => ({ window, api: open(), shown: '' })));
  const stops = followers
    .flat()
    .map((each) =>
      each.api.follow.set(each.window, (list) => (each.shown = JSON.stringify(list.map(({ _id, n }) => [_id, n])))),
    );
  const writers = Array.from({ length: 6 }, open);
  const ids: string[] = [];
  const change = async (n: number): Promise<void> => {
    const posts = random.pick(writers);
    const kind = random.pick(['a', 'b']);
    // Removed by another writer meanwhile, or not.
    const missing = (error: { code?: string }): void => void expect(error.code).toBe('DOCUMENT_NOT_FOUND');
    const what = random.below(4);
    if (what === 0 || ids.length < 5) ids.push((await posts.insert({ n: random.below(20), kind }))._id);
    else if (what === 1) await posts.remove(ids.splice(random.below(ids.length), 1)[0]!).catch(missing);
    else await posts.update(random.pick(ids), { n: random.below(20), ...(n % 2 && { kind }) }).catch(missing);
  };
  for (let round = 0; round < runs(30); round++) await Promise.all([0, 1, 2, 3, 4].map(change));
  const lists = await Promise.all(
    WINDOWS.map(async (window) => JSON.stringify((await writers[0]!.list(window)).items.map(({ _id, n }) => [_id, n]))),
  );
  await eventually('every window is what the list is', () =>
    followers.every((each) => each.every(({ shown }, at) => shown === lists[at])),
  );
  for (const stop of stops) stop();
});
