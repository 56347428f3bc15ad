import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { openTempDir } from '../../helpers/temp-dir.js';
import { call, collect, type Peer } from './peer.js';
import { rest } from './idle-streams.js';

export const NO_POCKETBASE =
  'there is none. Set POCKETBASE to its program; Debian has it in the package pocketbase, whose program is /usr/bin/base';

/** The program, by the variable POCKETBASE or on the path; null when there is none. */
export function findPocketBase(): string | null {
  const named = process.env.POCKETBASE;
  const programs = named === undefined ? ['pocketbase'] : [named];
  return programs.find((program) => spawnSync(program, ['--version']).status === 0) ?? null;
}

const OPERATOR = { identity: 'bench@example.com', password: 'a-password-for-benches' };
const TOKEN_SECONDS = 3_600;
const START_MS = 20_000;

/** Runs `work` with a PocketBase whose collection has the rule and the fields of ours. */
export async function withPocketBase<T>(program: string, users: number, work: (peer: Peer) => Promise<T>): Promise<T> {
  const dir = await openTempDir();
  const data = ['--dir', join(dir.path, 'data')];
  const { status, stderr } = spawnSync(program, ['superuser', 'upsert', OPERATOR.identity, OPERATOR.password, ...data]);
  if (status !== 0) throw new Error(`PocketBase took no operator: ${String(stderr)}`);
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(program, ['serve', '--http', `127.0.0.1:${port}`, ...data], { stdio: 'ignore' });
  try {
    await untilHealthy(url);
    return await work(await openPeer(url, child.pid!, users));
  } finally {
    if (child.exitCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await dir.remove();
  }
}

async function findFreePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function untilHealthy(url: string): Promise<void> {
  for (const end = performance.now() + START_MS; ; await rest(100)) {
    const response = await fetch(`${url}/api/health`).catch(() => null);
    if (response?.ok) return;
    if (performance.now() > end) throw new Error('PocketBase did not start');
  }
}

interface Owner {
  id: string;
  token: string;
}

async function openPeer(url: string, pid: number, users: number): Promise<Peer> {
  const api = `${url}/api/collections`;
  const signedIn = await call<{ token: string }>(`${api}/_superusers/auth-with-password`, 'POST', {}, OPERATOR);
  const asOperator = { authorization: signedIn.token };
  const rule = 'owner = @request.auth.id';
  await call(api, 'POST', asOperator, {
    name: 'items',
    type: 'base',
    listRule: rule,
    viewRule: rule,
    fields: ['owner', 'state', 'text'].map((name) => ({ name, type: 'text' })),
  });
  const owners: Owner[] = [];
  for (let user = 0; user < users; user++) {
    const secret = { password: OPERATOR.password, passwordConfirm: OPERATOR.password };
    const { id } = await call<{ id: string }>(`${api}/users/records`, 'POST', asOperator, {
      email: `user${user}@example.com`,
      ...secret,
    });
    const path = `${api}/users/impersonate/${id}`;
    const { token } = await call<{ token: string }>(path, 'POST', asOperator, { duration: TOKEN_SECONDS });
    owners.push({ id, token });
  }
  const items = `${api}/items/records`;
  return {
    url,
    pid,
    opens: (user) => ({
      request: 'GET /api/realtime HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n',
      ready: '"clientId":"',
      change: '"action":"',
      confirm: {
        head: `POST /api/realtime HTTP/1.1\r\nHost: bench\r\nAuthorization: ${owners[user]!.token}\r\nContent-Type: application/json\r\n`,
        body: JSON.stringify({ clientId: '{client}', subscriptions: [topic(true)] }),
      },
    }),
    async create(user, state) {
      const body = { owner: owners[user]!.id, state, text: 'a message of some words' };
      return (await call<{ id: string }>(items, 'POST', asOperator, body)).id;
    },
    update: (id, state) => call(`${items}/${id}`, 'PATCH', asOperator, { state }),
    remove: (id) => call(`${items}/${id}`, 'DELETE', asOperator),
    async listen(user, { onlyOpen }) {
      const { text, close } = await collect(`${url}/api/realtime`, {}, '"clientId":"');
      const clientId = /"clientId":"(\w+)"/.exec(text())![1]!;
      const headers = { authorization: owners[user]!.token };
      await call(`${url}/api/realtime`, 'POST', headers, { clientId, subscriptions: [topic(onlyOpen)] });
      return {
        text,
        async close() {
          await close();
          // It has nothing to go on from.
          return undefined;
        },
      };
    },
  };
}

function topic(onlyOpen: boolean): string {
  const options = JSON.stringify({ query: { filter: "state = 'open'" } });
  return onlyOpen ? `items/*?options=${encodeURIComponent(options)}` : 'items/*';
}
