import { describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.js';
import { runBinary, startService } from '../helpers/run-binary.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { use } from '../helpers/use.js';

const PASSWORD = 'correct horse battery';

const env = (): Record<string, string> => ({
  BSVC_DATA_DIR: dir.path,
  BSVC_PROJECT: 'shop',
  BSVC_LOG_LEVEL: 'warn',
  BSVC_BCRYPT_COST: '4',
});
const bsvc = (...words: string[]) => runBinary(words, { env: env() });

function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${service.ready.url}${path}`, {
    method,
    headers: { 'x-api-key': key, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

async function signUp(email: string): Promise<Record<string, string>> {
  const reply = await call('POST', '/api/userAuth/signup', { email, password: PASSWORD });
  const { accessToken } = (await reply.json()) as { accessToken: string };
  return { authorization: `Bearer ${accessToken}` };
}

const dir = use(await openTempDir());
const service = use(await startService(['serve', '--port', '0'], env()));
const created = await bsvc('project', 'create', 'shop', '--json');
const key = (JSON.parse(created.stdout) as { keys: { publishable: string } }).keys.publishable;
await bsvc('collection', 'add', 'notes', '--flexible', '--rls', 'private');

describe('commands about users beside a running server', () => {
  it.each([
    ['update', ['--disable']],
    ['delete', ['--yes']],
  ])('bsvc user %s ends tokens there, for documents too', async (verb, more) => {
    const bearer = await signUp(`${verb}@example.test`);
    expect((await call('GET', '/api/data/notes', undefined, bearer)).status).toBe(200);
    expect((await bsvc('user', verb, `${verb}@example.test`, ...more)).code).toBe(0);
    const refused = async (): Promise<boolean> =>
      (await call('GET', '/api/data/notes', undefined, bearer)).status === 401;
    await eventually('the token is refused', refused, 1000);
    expect((await call('GET', '/api/userAuth/me', undefined, bearer)).status).toBe(401);
  });

  it('a field added by bsvc collection edit users can be signed up with', async () => {
    const edited = await bsvc('collection', 'edit', 'users', '--add-field', 'city:String');
    expect(edited.code).toBe(0);
    const body = { email: 'city@example.test', password: PASSWORD, city: 'Oslo' };
    const accepted = async (): Promise<boolean> => (await call('POST', '/api/userAuth/signup', body)).status === 201;
    await eventually('the field is known', accepted, 1000);
  });

  it('an account made by bsvc user create can sign in, and the outbox shows the codes of others', async () => {
    const made = await runBinary(['user', 'create', '--email', 'made@example.test', '--password-stdin', '--verified'], {
      env: env(),
      stdin: PASSWORD,
    });
    expect(made.code).toBe(0);
    const email = 'made@example.test';
    expect((await call('POST', '/api/userAuth/login', { email, password: PASSWORD })).status).toBe(200);
    await signUp('mailed@example.test');
    const mailed = async (): Promise<boolean> => {
      const { stdout } = await bsvc('mail', 'outbox', '--to', 'mailed@example.test', '--json');
      return /Your code is \d{6}/.test((JSON.parse(stdout) as { text: string }[])[0]?.text ?? '');
    };
    await eventually('the code is in the outbox', mailed);
  });
});
