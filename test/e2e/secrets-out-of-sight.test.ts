import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SETTINGS } from '../world/app.js';
import { COMMANDS, type CommandNode, type LoadedCommand } from '../world/cli.js';
import { eventually } from '../helpers/eventually.js';
import { childrenOf } from '../helpers/process-tree.js';
import { BINARY, runBinary, startService, type RunningService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

/**
 * Every secret of this test holds this word or is added to the list once it is made, so that one that gets out is
 * found.
 */
const CANARY = 'canary4711';
const PASSWORD = `${CANARY}-password`;
const NOBODY = '127.0.0.1:9';
const GIVEN = {
  BSVC_ADMIN_TOKEN: `admin-token-${CANARY}`,
  BSVC_SECRET_KEY: `master-key-${CANARY}-0123456789-abcdefgh`,
  // None of these is there: what is logged about them must not tell how to sign in.
  REDIS_URL: `redis://:${CANARY}@${NOBODY}`,
  BSVC_SMTP_URL: `smtp://mailer:${CANARY}@${NOBODY}`,
  PROVIDER_WEBHOOK_SECRET: `whsec_${Buffer.from(CANARY).toString('base64')}`,
};

const dir = use(await openTempDir());
const env: Record<string, string> = {
  BSVC_DATA_DIR: dir.path,
  BSVC_BCRYPT_COST: '4',
  BSVC_PROJECT: 'shop',
  BSVC_MAIL_FROM: 'me@shop.test',
  ...GIVEN,
};
env.NEEDED = PASSWORD;
await runBinary(['project', 'create', 'shop'], { env });

async function listCommands(nodes: readonly CommandNode[], path: string[] = []): Promise<[string, LoadedCommand][]> {
  const found = await Promise.all(
    nodes.map(async (node): Promise<[string, LoadedCommand][]> =>
      node.commands
        ? listCommands(node.commands, [...path, node.name])
        : [[[...path, node.name].join(' '), (await node.load()).default]],
    ),
  );
  return found.flat();
}

describe('the options of every command', () => {
  it('take no secret: one comes by standard input, from a named variable or from a prompt', async () => {
    const commands = await listCommands(COMMANDS);
    const secrets = new Set(
      Object.values<{ env: string; secret?: boolean }>(SETTINGS)
        .filter(({ secret }) => secret)
        .map(({ env: name }) => name),
    );
    expect(secrets.size).toBeGreaterThan(5);
    const given = commands.flatMap(([words, { parameters }]) =>
      Object.values(parameters)
        .filter(({ kind, flags: option, env: setting }) => {
          const name = option.split(' ')[0]!;
          const isFlag = kind === 'option' && !option.includes('<');
          if (kind === 'secret' || isFlag) return false;
          return /passw|secret|token|credential|-key$/.test(name) || secrets.has(setting ?? '');
        })
        .map((parameter) => `${words} ${parameter.flags}`)
        // The name of a field by which lines find their documents; a publishable key; the algorithm that signs tokens.
        .filter((option) => !/^(data import --key|generate --key|project update --tokens <algorithm>)/.test(option)),
    );
    expect(given).toEqual([]);
    const asked = commands.filter(([, { parameters }]) =>
      Object.values(parameters).some(({ kind }) => kind === 'secret'),
    );
    expect(asked.length).toBeGreaterThan(6);
  });
});

// The list of processes is that of Linux.
describe.runIf(process.platform === 'linux')('the list of processes', () => {
  it.each([
    [['user', 'create', '--email', 'ann@example.com', '--password-stdin'], PASSWORD],
    [['operator', 'add', '--email', 'op@example.com', '--password-env', 'NEEDED'], ''],
    [['byok', 'set', '--mail-key-stdin', '--no-verify'], `re_${CANARY}`],
  ])('shows nothing of what %j reads', async (words, stdin) => {
    const seen = new Set<string>();
    const child = spawn(process.execPath, [BINARY, ...words], { env: { PATH: process.env.PATH!, ...env } });
    const ended = once(child, 'close') as Promise<[number]>;
    const look = (): void => listTree(child.pid!).forEach((line) => seen.add(line));
    child.stdin.write(stdin.slice(0, 10));
    await eventually('it is in the list', () => {
      look();
      return [...seen].some((line) => line.includes(words.slice(0, 2).join(' ')));
    });
    const looking = setInterval(look, 5);
    child.stdin.end(stdin.slice(10));
    const [code] = await ended.finally(() => clearInterval(looking));
    expect(code).toBe(0);
    expect([...seen].filter((line) => line.includes(CANARY))).toEqual([]);
  });
});

describe.runIf(process.platform === 'linux')('a server of two processes', () => {
  let service: RunningService;

  beforeAll(async () => {
    service = await startService(['serve', '--port', '0', '--processes', '2'], { ...env, BSVC_LOG_LEVEL: 'trace' });
  });
  afterAll(() => service.stop());

  it('shows no secret in the list of processes', () => {
    const tree = listTree(service.ready.pid);
    expect(tree.filter((line) => line.includes('serve')).length).toBeGreaterThanOrEqual(3);
    expect(tree.filter((line) => line.includes(CANARY))).toEqual([]);
  });

  it('logs none of its settings, though none of what they name is there', async () => {
    const { url } = service.ready;
    const call = (method: string, path: string, body: object, headers: Record<string, string>): Promise<Response> =>
      fetch(`${url}/api${path}`, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
    const admin = { authorization: `Bearer ${GIVEN.BSVC_ADMIN_TOKEN}` };
    const created = await call('POST', '/projects', { name: 'busy' }, admin);
    const { keys } = ((await created.json()) as { data: { keys: { publishable: string; secret: string } } }).data;
    const account = { email: 'user@b.test', password: PASSWORD };
    await call('POST', '/userAuth/signup', account, { 'x-api-key': keys.publishable });
    const mail = { to: 'a@b.co', subject: 'Hello', text: 'Hello' };
    await call('POST', '/mail/send', mail, { 'x-api-key': keys.secret });
    expect(await service.stop()).toBe(0);
    const log = service.stdout() + service.stderr();
    expect(log).toContain('"path":"/api/userAuth/signup"');
    const told = log.split('\n').filter((line) => [CANARY, keys.secret].some((secret) => line.includes(secret)));
    expect(told).toEqual([]);
  });
});

describe('a server that cannot start', () => {
  it.each([
    [{ MONGODB_URI: `mongodb://me:${CANARY}@${NOBODY}/` }, 3],
    [{ MONGODB_URI: `mongodb://me:${CANARY}@${NOBODY}/?replicaSet=${CANARY}&directConnection=maybe` }, 2],
    [{ REDIS_URL: `http://:${CANARY}@${NOBODY}` }, 2],
    [{ BSVC_SMTP_URL: `mail://me:${CANARY}@${NOBODY}` }, 2],
    [{ MONGODB_URI: `mongodb://me:${CANARY}@` }, 2],
  ] as [Record<string, string>, number][])('says why without the secret: %j', async (settings, code) => {
    const outcome = await runBinary(['serve', '--port', '0'], {
      env: { ...env, ...settings, BSVC_LOG_LEVEL: 'debug' },
    });
    expect(outcome.stderr).not.toContain(CANARY);
    expect({ code: outcome.code, stderr: outcome.stderr.split('\n')[0] }).toMatchObject({ code });
  });
});

/** The command lines of a process and of all that descend from it. */
function listTree(pid: number): string[] {
  try {
    const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    return [line, ...childrenOf(pid).flatMap(listTree)];
  } catch {
    // It ended while we looked.
    return [];
  }
}
