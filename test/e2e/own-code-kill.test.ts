import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { killRunning, runOrThrow, startService, type RunningService } from '../helpers/run-binary.js';
import { openWebhookReceiver } from '../helpers/webhook-receiver.js';
import { use } from '../helpers/use.js';

let service: RunningService;

const dir = use(await openTempDir());
const receiver = use(await openWebhookReceiver());
const settings: Record<string, string> = {
  BSVC_DATA_DIR: join(dir.path, 'data'),
  BSVC_WEBHOOK_ALLOW_PRIVATE: 'true',
  BSVC_LOG_LEVEL: 'error',
};
const { keys } = JSON.parse(await runOrThrow(['project', 'create', 'shop', '--json'], settings)) as {
  keys: { secret: string };
};
const inShop = { ...settings, BSVC_PROJECT: 'shop' };
const fields = ['--field', 'n:Number!', '--field', 'price:Number@hook'];
await runOrThrow(['collection', 'add', 'orders', ...fields], inShop);
await runOrThrow(['hook', 'add', 'orders.create', '--url', receiver.url], inShop);
const folder = join(dir.path, 'hooks');
await mkdir(folder);
await writeFile(
  join(folder, 'own.mjs'),
  `export default { 'GET /pid': () => ({ body: { pid: process.pid } }), 'GET /hang': () => { for (;;); }, 'orders.delete': () => ({ allow: true }) };`,
);
await runOrThrow(['hook', 'add', 'orders.delete', '--run', join(folder, 'own.mjs')], inShop);
const start = (): Promise<RunningService> => startService(['serve', '--port', '0'], settings);
service = await start();
afterAll(async () => {
  killRunning();
});

const send = (path: string, init: RequestInit = {}): Promise<Response> =>
  fetch(`${service.ready.url}${path}`, {
    ...init,
    headers: { 'x-api-key': keys.secret, 'content-type': 'application/json', ...init.headers },
  });
const insert = (n: number): Promise<Response> =>
  send('/api/data/orders', {
    method: 'POST',
    body: JSON.stringify({ n }),
    headers: { 'idempotency-key': `order-${n}` },
  });

async function stored(): Promise<{ n: number; price?: number }[]> {
  const { data } = (await (await send('/api/data/orders?sort=n&limit=100')).json()) as {
    data: { items: { n: number; price?: number }[] };
  };
  return data.items;
}

describe('a service that is killed', () => {
  it('while it waits for own code has stored nothing, and asks the same again', async () => {
    const asked = new Promise<void>((resolve) => (receiver.answer = () => resolve()));
    const lost = insert(0).catch(() => null);
    await asked;
    await service.stop('SIGKILL');
    expect(await lost).toBe(null);
    receiver.answer = (response) => void response.writeHead(200).end('{"allow":true,"set":{"price":7}}');
    service = await start();
    expect(await stored()).toEqual([]);
    expect((await insert(0)).status).toBe(201);
    expect((await insert(0)).status).toBe(201);
    const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
    expect([ids.length, new Set(ids).size]).toEqual([2, 1]);
    expect(await stored()).toMatchObject([{ n: 0, price: 7 }]);
  });

  it('between answer and write has stored nothing, or all of it', async () => {
    for (let n = 1; n <= 6; n++) {
      const killed = new Promise<unknown>((resolve) => {
        receiver.answer = (response) =>
          void response.writeHead(200).end('{"allow":true,"set":{"price":7}}', () => {
            // Each time a little later.
            const wait = (left: number): void =>
              left === 0 ? resolve(service.stop('SIGKILL')) : void setImmediate(wait, left - 1);
            wait(n * 2);
          });
      });
      const answered = insert(n).then(
        ({ status }) => status,
        () => null,
      );
      await killed;
      const status = await answered;
      service = await start();
      const found = (await stored()).filter((each) => each.n === n);
      expect(found.length).toBeLessThanOrEqual(1);
      if (status === 201) expect(found).toHaveLength(1);
      expect(found.every(({ price }) => price === 7)).toBe(true);
      receiver.answer = (response) => void response.writeHead(200).end('{"allow":true,"set":{"price":7}}');
      expect((await insert(n)).status).toBe(201);
      expect((await stored()).filter((each) => each.n === n)).toHaveLength(1);
    }
  });

  it('takes its own code with it, also where a handler holds up the thread', async () => {
    const { pid } = (await (await send('/api/run/pid')).json()) as { pid: number };
    const isThere = (): boolean => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    };
    void send('/api/run/hang').catch(() => undefined);
    await eventually('it no longer answers: the thread is held up', () =>
      send('/api/run/pid', { signal: AbortSignal.timeout(500) }).then(
        () => false,
        () => true,
      ),
    );
    expect(isThere()).toBe(true);
    await service.stop('SIGKILL');
    await eventually('it is gone', () => !isThere());
  });
});
