import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { eventually } from '../../helpers/eventually.js';
import { runBinary, runOrThrow, startService, type RunningService } from '../../helpers/run-binary.js';
import { openTempDir } from '../../helpers/temp-dir.js';
import { use } from '../../helpers/use.js';

const dir = use(await openTempDir());
const env: Record<string, string> = {
  BSVC_DATA_DIR: join(dir.path, 'data'),
  BSVC_DURABILITY: 'relaxed',
  BSVC_PROJECT: 'shop',
  BSVC_PORT: '0',
  BSVC_LOG_LEVEL: 'error',
};
await runOrThrow(['project', 'create', 'shop'], env);
const secret = await runOrThrow(['key', 'create', '--type', 'secret', '-q'], env);
await runOrThrow(['collection', 'add', 'notes', '--flexible'], env);
const stdin = Array.from({ length: 500 }, (_, n) => `{"n":${n}}\n`).join('');
await runBinary(['data', 'import', 'notes', '-', '--format', 'ndjson'], { env, stdin });
await runOrThrow(['backup', '--out', join(dir.path, 'all.backup')], env);
const servers = await Promise.all([startService(['serve'], env), startService(['serve'], env)]);
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
});

const headers = () => ({ 'x-api-key': secret, 'content-type': 'application/json' });

const insert = (server: RunningService, body: object) =>
  fetch(`${server.ready.url}/api/data/notes`, { method: 'POST', headers: headers(), body: JSON.stringify(body) });

const count = async (server: RunningService): Promise<number> => {
  const response = await fetch(`${server.ready.url}/api/data/notes?count=true`, { headers: headers() });
  return ((await response.json()) as { data: { count: number } }).data.count;
};

describe('bsvc restore beside two processes that are written to', () => {
  it('gives what the backup holds: they answer 503 until it has ended, never 401, and go on without a restart', async () => {
    const answers = new Map<number, number>();
    const codes = new Set<string>();
    const acknowledgedAfter = new Map(servers.map((server) => [server, 0]));
    let over = false;
    const write = async (server: RunningService): Promise<void> => {
      let phase = 'before';
      while (!over || phase === 'before') {
        const response = await insert(server, { phase });
        const { code } = (await response.json()) as { code?: string };
        answers.set(response.status, (answers.get(response.status) ?? 0) + 1);
        if (code) codes.add(code);
        if (response.status === 503) phase = 'after';
        else if (phase === 'after') acknowledgedAfter.set(server, acknowledgedAfter.get(server)! + 1);
      }
    };
    const writers = Promise.all(servers.flatMap((server) => [write(server), write(server)]));
    await eventually('the writers are at work', () => (answers.get(201) ?? 0) > 20);
    const restored = await runBinary(['restore', join(dir.path, 'all.backup'), '--yes', '--json'], { env });
    // Each of them learns for itself that the store is whole.
    await eventually('the writers go on', () => [...acknowledgedAfter.values()].every((stored) => stored > 10));
    over = true;
    await writers;
    expect({ code: restored.code, stderr: restored.stderr }).toEqual({ code: 0, stderr: '' });
    expect([...answers.keys()].sort()).toEqual([201, 503]);
    expect([...codes]).toEqual(['RESTORING']);

    const stored = (await runOrThrow(['data', 'export', 'notes'], env)).split('\n');
    const phases = stored.map((line) => (JSON.parse(line) as { phase?: string }).phase ?? 'backup');
    const tally = (wanted: string): number => phases.filter((phase) => phase === wanted).length;
    const after = [...acknowledgedAfter.values()].reduce((sum, each) => sum + each, 0);
    expect([tally('backup'), tally('before'), tally('after')]).toEqual([500, 0, after]);
    const [one, other] = await Promise.all(servers.map(count));
    expect([one, other]).toEqual([stored.length, stored.length]);
  });
});
