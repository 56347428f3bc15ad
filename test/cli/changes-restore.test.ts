import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openEngine } from '../world/engine.js';
import { openCliHome } from '../helpers/run-cli.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

const home = use(openCliHome());
const bsvc = home.bsvc;

await bsvc(['project', 'create', 'shop']);
await bsvc(['collection', 'add', 'posts', '--project', 'shop', '--field', 'title:String']);
await bsvc(['collection', 'edit', 'posts', '--changes', 'on', '--project', 'shop']);

const add = (title: string) =>
  bsvc(['data', 'import', 'posts', '-', '--format', 'ndjson', '--project', 'shop'], {
    stdin: `{"title":"${title}"}\n`,
  });

/**
 * What somebody who follows is told since the last time: the titles of documents, or that everything is to be
 * forgotten.
 */
async function watch(env: Record<string, string> = {}): Promise<string[]> {
  const words = [
    'data',
    'query',
    'posts',
    '--watch',
    '--project',
    'shop',
    '--once',
    '--cursor-file',
    join(home.dir, 'posts.cursor'),
  ];
  const { code, stdout, stderr } = await bsvc(words, { env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as { type: string; document?: { title: string } })
    .map(({ type, document }) => document?.title ?? type);
}

describe('a follower of changes', () => {
  it('starts over when a restore or a move has changed the world under its cursor', async () => {
    await add('kept');
    expect(await watch()).toEqual(['kept']);
    await bsvc(['backup', '--out', 'one.backup']);
    await add('undone');
    expect(await watch()).toEqual(['undone']);

    // A restore takes back what the follower has been told of.
    expect((await bsvc(['restore', 'one.backup', '--yes'])).code).toBe(0);
    expect(await watch()).toEqual(['reset', 'kept']);
    await add('after');
    expect(await watch()).toEqual(['after']);

    // The other store has a log of its own.
    const dir = await openTempDir();
    const engine = openEngine({ dataDir: dir.path, durability: 'relaxed' });
    try {
      const { uri } = await engine.listen('127.0.0.1:0');
      const moved = await bsvc(['move-to', uri, '--json']);
      expect(await watch(moved.json<{ next: Record<string, string> }>().next)).toEqual(['reset', 'kept', 'after']);
    } finally {
      await engine.close();
      await dir.remove();
    }
  });
});
