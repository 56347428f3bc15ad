import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Agent } from 'node:http';
import { migrate } from '../world/app.js';
import { documentsName } from '../world/collections.js';
import { jobStore } from '../world/stored.js';
import { buildCollection, buildProject } from '../helpers/build-project.js';
import { buildWebhook } from '../helpers/build-webhook.js';
import { eventually } from '../helpers/eventually.js';
import { send } from '../helpers/load.js';
import { startService, type RunningService } from '../helpers/run-binary.js';
import { withApp } from '../helpers/with-app.js';
import { openTempDir, type TempDir } from '../helpers/temp-dir.js';
import { openWebhookReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.js';

const CLIENTS = 8;

let dir: TempDir;
let env: Record<string, string>;
let receiver: WebhookReceiver;
const running: RunningService[] = [];
beforeEach(async () => {
  dir = await openTempDir();
  env = { BSVC_DATA_DIR: dir.path, BSVC_LOG_LEVEL: 'fatal', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' };
  receiver = await openWebhookReceiver();
});
afterEach(async () => {
  for (const service of running.splice(0)) await service.stop('SIGKILL');
  await receiver.close();
  await dir.remove();
});

interface Writing {
  /** Tags of documents whose creation was answered 201. */
  stored: Set<string>;
  /** Everything else that happened to a request that had found a listener. */
  failed: string[];
  ended: Promise<unknown>;
}

/**
 * Clients, with a connection each or one for each request, that create one document after the other until nobody
 * listens any more.
 */
function startWriting(url: string, key: string, keepAlive: boolean): Writing {
  const stored = new Set<string>();
  const failed: string[] = [];
  const run = async (client: number): Promise<void> => {
    const agent = new Agent({ keepAlive, maxSockets: 1 });
    for (let made = 0; ; made++) {
      const tag = `${client}-${made}`;
      try {
        const body = JSON.stringify({ tag, text: 'x'.repeat(500) });
        const status = await send(`${url}/api/data/notes`, agent, { 'x-api-key': key }, body);
        if (status === 201) stored.add(tag);
        else failed.push(`${tag}: ${status}`);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') break;
        failed.push(`${tag}: ${(error as Error).message}`);
      }
    }
    agent.destroy();
  };
  return { stored, failed, ended: Promise.all(Array.from({ length: CLIENTS }, (_, client) => run(client))) };
}

describe.each([
  { processes: 1, keepAlive: false },
  { processes: 2, keepAlive: true },
  { processes: 4, keepAlive: false },
])('SIGTERM while clients write, processes: $processes, keep-alive: $keepAlive', ({ processes, keepAlive }) => {
  it('fails no request, keeps every answered document, and leaves no job in anybody’s hands', async () => {
    const { secret, name } = await withApp(env, async (app) => {
      await migrate(app.db);
      const owner = await buildProject(app);
      const notes = await buildCollection(app, owner.project, { name: 'notes' });
      await buildWebhook(app, owner.project, receiver.url);
      return { secret: owner.secret, name: documentsName(notes) };
    });
    const stopped = await startService(['serve', '--port', '0', '--processes', String(processes)], env);
    running.push(stopped);
    const writing = startWriting(stopped.ready.url, secret, keepAlive);
    await eventually('there is load', () => writing.stored.size > 80);
    expect(await stopped.stop('SIGTERM')).toBe(0);
    await writing.ended;
    expect(writing.failed).toEqual([]);
    await withApp(env, async (app) => {
      expect(await app.db.collection(name).countDocuments({})).toBe(writing.stored.size);
      expect(await jobStore(app).countDocuments({ state: 'running' })).toBe(0);
    });
    const service = await startService(['serve', '--port', '0'], env);
    running.push(service);
    const told = (): number => new Set(receiver.received.map(({ event }) => event.id)).size;
    await eventually('every change is told', () => told() === writing.stored.size);
  });
});
