import { Agent, request } from 'node:http';
import { ObjectId } from 'bson';
import { expect, it } from 'vitest';
import { loadConfig, openApp, openLogger } from '../world/app.js';
import { addCollection } from '../world/collections.js';
import { signAccessToken } from '../world/users.js';
import { buildProject } from '../helpers/build-project.js';
import { openRandom } from '../helpers/random.js';
import { startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';

const BOARDS = ['b0', 'b1', 'b2', 'b3'];
const ROUNDS = 150;

interface Reply {
  status: number;
  body: { _id?: string; data?: { items?: { board: string }[]; count?: number } };
}

it('a membership counts and ends for the first request after it was answered, in each of three processes', async () => {
  const dir = await openTempDir();
  const env = { BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'error', BSVC_RATE_LIMIT: 'off', BSVC_DURABILITY: 'relaxed' };
  const app = await openApp(
    loadConfig([{ source: 'test', values: env }]).config,
    openLogger({ level: 'error', format: 'json' }),
  );
  const { project, publishable, secret } = await buildProject(app, 'boards');
  const text = (name: string) => ({ name, type: 'String' as const });
  const fields = ['board', 'user'].map(text);
  await addCollection(app, project, { name: 'members', fields, rules: 'server-only' });
  const read = 'doc.board in members[user = user.id].board';
  await addCollection(app, project, { name: 'cards', fields: [text('board')], rules: { read } });
  const users = Array.from({ length: 3 }, () => {
    const id = new ObjectId().toHexString();
    const token = signAccessToken(app, project, id, 3_600_000);
    return {
      id,
      headers: { 'x-api-key': publishable, authorization: `Bearer ${token}` },
      boards: new Map<string, string>(),
    };
  });
  await app.close();
  const service = await startService(['serve', '--port', '0', '--processes', '3'], env);
  // Each connection is another process's.
  const agent = new Agent({ keepAlive: false });
  const send = (method: string, path: string, headers: Record<string, string>, body?: object): Promise<Reply> =>
    new Promise((resolve, reject) => {
      const options = { method, agent, headers: { ...headers, 'content-type': 'application/json' } };
      const sent = request(`${service.ready.url}/api/data/${path}`, options, (res) => {
        let received = '';
        res.setEncoding('utf8').on('data', (part: string) => (received += part));
        res.on('end', () => resolve({ status: res.statusCode!, body: JSON.parse(received) as Reply['body'] }));
      });
      sent.on('error', reject).end(body && JSON.stringify(body));
    });
  const server = { 'x-api-key': secret };
  try {
    for (const board of BOARDS) expect((await send('POST', 'cards', server, { board })).status).toBe(201);
    const random = openRandom(36);
    let ended = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const user = random.pick(users);
      const board = random.pick(BOARDS);
      const id = user.boards.get(board);
      if (id === undefined) {
        const { body } = await send('POST', 'members', server, { user: user.id, board });
        user.boards.set(board, body._id!);
      } else {
        expect(
          (await send('DELETE', `members/${id}${random.chance(0.5) ? '?permanent=true' : ''}`, server)).status,
        ).toBe(200);
        user.boards.delete(board);
        ended++;
      }
      const another = random.pick(users);
      const asked = [user, user, user, user, another].map(async ({ headers, boards }) => {
        const { body } = await send('GET', 'cards', headers);
        expect(body.data!.items!.map((card) => card.board).sort(), `round ${round}`).toEqual([...boards.keys()].sort());
      });
      const pinned = send('GET', `cards?board=${board}&count=true`, user.headers).then(({ body }) =>
        expect(body.data!.count, `round ${round}`).toBe(user.boards.has(board) ? 1 : 0),
      );
      await Promise.all([...asked, pinned]);
    }
    expect(ended).toBeGreaterThan(20);
  } finally {
    agent.destroy();
    await service.stop();
    await dir.remove();
  }
});
