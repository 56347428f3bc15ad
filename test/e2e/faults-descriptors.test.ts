import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.js';
import { runBinary, startService, type RunningService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

const dir = use(await openTempDir());
const env: Record<string, string> = {
  BSVC_DATA_DIR: join(dir.path, 'data'),
  BSVC_BCRYPT_COST: '4',
  BSVC_LOG_FORMAT: 'json',
  BSVC_PORT: '0',
};

let service: RunningService;
let key: string;
const sockets: Socket[] = [];
const agents: Agent[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const agent of agents.splice(0)) agent.destroy();
  await service.stop('SIGKILL');
});

/** Starts on a store of its own, with the demo project. */
async function start(openFiles?: number): Promise<void> {
  env.BSVC_DATA_DIR = join(dir.path, `data-${openFiles ?? 'any'}`);
  service = await startService(['serve', '--demo'], env, { openFiles });
  key = service.ready.demo!.keys.secret;
}

interface Answer {
  status: number;
  code: string | undefined;
  retryAfter: string | undefined;
  body: Record<string, unknown>;
}

/** A client with one connection, which it keeps. */
function openClient(): (method: string, path: string, body?: string, type?: string) => Promise<Answer> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  agents.push(agent);
  return async (method, path, body, type = 'application/json') => {
    const headers = { 'x-api-key': key, ...(body !== undefined && { 'content-type': type }) };
    const sent = request(`${service.ready.url}${path}`, { method, agent, headers }).end(body);
    const [reply] = (await once(sent, 'response')) as [IncomingMessage];
    let text = '';
    for await (const part of reply.setEncoding('utf8')) text += String(part);
    const parsed = reply.headers['content-type']?.includes('json')
      ? (JSON.parse(text) as Record<string, unknown>)
      : { text };
    return {
      status: reply.statusCode!,
      code: parsed['code'] as string | undefined,
      retryAfter: reply.headers['retry-after'],
      body: parsed,
    };
  };
}

const FORM = 'multipart/form-data; boundary=x';
const upload =
  '--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nhello\r\n--x--\r\n';

/** Opens a connection, asks for a document list by it, and waits for the answer or the end. */
async function hold(): Promise<{ status: number | null; text: string }> {
  const socket = connect(Number(new URL(service.ready.url).port), '127.0.0.1');
  sockets.push(socket);
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => (text += part));
  socket.on('error', () => undefined);
  socket.write(`GET /api/data/posts?limit=1 HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\n\r\n`);
  await eventually('an answer or the end', () => socket.closed || /\r\n\r\n[^]*\}$/.test(text));
  return { status: text === '' ? null : Number(text.slice(9, 12)), text };
}

describe('a process that may open few files', () => {
  it('says so at its start, and never ends by a signal', async () => {
    service = { stop: () => Promise.resolve(0) } as unknown as RunningService;
    const codes = new Set<string>();
    for (const openFiles of [24, 27, 40]) {
      const { code, stderr } = await runBinary(['serve'], { env, openFiles });
      expect([openFiles, code, stderr]).toEqual([openFiles, 3, expect.stringContaining('"ulimit -n"')]);
      codes.add(stderr.includes('or more') ? 'serving' : 'opening');
    }
    expect([...codes].sort()).toEqual(['opening', 'serving']);
    const list = await runBinary(['project', 'list'], { env, openFiles: 24 });
    expect([list.code, list.stderr]).toEqual([3, expect.stringContaining('"ulimit -n"')]);
  });

  it('answers 503 to connections beyond its room, says how it is, and serves those who are in', async () => {
    await start(72);
    const inside = openClient();
    expect((await inside('GET', '/api/data/posts')).status).toBe(200);
    let served = 1;
    let last = await hold();
    for (; last.status === 200; last = await hold()) served++;
    expect(served).toBeGreaterThanOrEqual(8);
    expect(served).toBeLessThan(40);
    expect(last.status).toBe(503);
    expect(last.text).toMatch(/connection: close/i);
    expect(last.text).toMatch(/retry-after: 1/i);
    expect(last.text).toContain('"code":"OVERLOADED"');
    expect((await openClient()('GET', '/api/health/ready')).status).toBe(200);
    expect((await inside('GET', '/api/data/posts')).status).toBe(200);
    expect((await inside('POST', '/api/storage/upload', upload, FORM)).status).toBe(201);
    expect(service.stderr()).toContain('"stage":"connected","unit":"connections","scope":"all"');
    for (const socket of sockets.splice(0)) socket.destroy();
    await eventually('there is room again', async () => (await openClient()('GET', '/api/data/posts')).status === 200);
  });
});

/** Gives the running process another limit; those it has open stay. */
function allow(soft: number): void {
  execFileSync('prlimit', ['--pid', String(service.ready.pid), `--nofile=${soft}:1000`]);
}

it('without any descriptor left, what needs a file is 503 with a line in the log, and works again afterwards', async () => {
  await start(1_000);
  const call = openClient();
  const added = await call('POST', '/api/storage/upload', upload, FORM);
  expect(added.status).toBe(201);
  const path = `/files/${String(added.body['path'])}`;
  expect(await call('GET', path)).toMatchObject({ status: 200, body: { text: 'hello' } });
  // Reader threads decode documents of this size.
  const large = JSON.stringify({ title: 'large', body: 'x'.repeat(40_000) });
  expect((await call('POST', '/api/data/posts', large)).status).toBe(201);
  const pipeline = JSON.stringify({ pipeline: [{ $group: { _id: '$status', n: { $sum: 1 } } }] });
  // Its connection is there.
  allow(3);
  const needy: [string, string, string?, string?][] = [
    ['POST', '/api/storage/upload', upload, FORM],
    ['GET', path],
    ['POST', '/api/data/posts/aggregate', pipeline],
  ];
  for (const words of needy) {
    const answer = await call(...words);
    expect([words[1], answer]).toEqual([words[1], expect.objectContaining({ status: 503, code: 'OVERLOADED' })]);
    expect(answer.retryAfter).toBe('5');
  }
  expect(service.stderr().match(/"level":40.*EMFILE/g)).toHaveLength(needy.length);
  // What needs none goes on.
  expect((await call('GET', '/api/data/posts')).status).toBe(200);
  expect((await call('POST', '/api/data/posts', '{"title":"more"}')).status).toBe(201);
  expect((await call('GET', '/api/health/ready')).status).toBe(200);
  allow(1_000);
  for (const words of needy) expect([words[1], (await call(...words)).status < 300]).toEqual([words[1], true]);
  expect((await openClient()('GET', '/api/data/posts')).status).toBe(200);
  expect(await service.stop()).toBe(0);
  expect((await runBinary(['doctor', '--deep', '--json'], { env })).stdout).toContain('"name":"content","ok":true');
});
