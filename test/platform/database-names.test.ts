import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openEngine } from '../../src/engine/index.js';
import { openCliHome } from '../helpers/run-cli.js';

let home: ReturnType<typeof openCliHome>;
beforeEach(() => {
  home = openCliHome();
});
afterEach(() => home.remove());

const dataDir = (): string => join(home.dir, 'data');
const listed = async (env: Record<string, string> = {}): Promise<string> =>
  (await home.bsvc(['project', 'list', '--json'], { env })).stdout;

/** Renames the store's database to what an earlier version would have called it. */
async function renameAll(from: string, to: string, { leave = [] as string[] } = {}): Promise<void> {
  const engine = openEngine({ dataDir: dataDir(), durability: 'relaxed' });
  for (const { collectionName } of await engine.db(from).collections()) {
    if (leave.includes(collectionName)) continue;
    await engine.db('admin').command({ renameCollection: `${from}.${collectionName}`, to: `${to}.${collectionName}` });
  }
  await engine.close();
}

describe('the database of an embedded store', () => {
  it('is the same whatever BSVC_MONGODB_DB says', async () => {
    await home.bsvc(['project', 'create', 'shop']);
    expect(await listed({ BSVC_MONGODB_DB: 'elsewhere' })).toContain('"shop"');
    await home.bsvc(['project', 'create', 'second'], { env: { BSVC_MONGODB_DB: 'elsewhere' } });
    expect(await listed()).toContain('"second"');
  });

  it('that an earlier version named otherwise takes its name, also after an interruption', async () => {
    await home.bsvc(['project', 'create', 'shop']);
    await renameAll('bsvc', 'mine');
    expect(await listed()).toContain('"shop"');
    await renameAll('bsvc', 'mine', { leave: ['collections', 'audit_log', 'migrations'] });
    expect(await listed()).toContain('"shop"');
  });

  it('is not guessed when an empty one was made beside the one with projects', async () => {
    await home.bsvc(['project', 'create', 'shop']);
    await renameAll('bsvc', 'mine');
    const engine = openEngine({ dataDir: dataDir(), durability: 'relaxed' });
    await engine.db('bsvc').collection('migrations').insertOne({ name: 'first' });
    await engine.close();
    const { code, stderr } = await home.bsvc(['project', 'list']);
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('but in mine') as string });
  });
});
