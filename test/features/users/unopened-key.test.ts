import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { projectStore } from '../../../src/features/projects/project-store.js';
import { openSecretBox } from '../../../src/platform/secrets/secret-box.js';
import { buildProject, type TestProject } from '../../helpers/build-project.js';
import { openTestApp, type TestApp } from '../../helpers/open-test-app.js';
import { buildEmail, openUserClient, PASSWORD, type UserClient } from '../../helpers/user-client.js';
import { CALLERS } from '../../../src/features/projects/project-store.js';
import { TOKEN_KEYS } from '../../../src/features/projects/token-secret.js';

let test: TestApp;
let owner: TestProject;
let client: UserClient;
let email: string;
let refreshToken: string;

beforeAll(async () => {
  test = await openTestApp({ settings: { BSVC_BCRYPT_COST: '4' } });
  owner = await buildProject(test.app);
  client = openUserClient(test, owner.publishable);
  email = buildEmail();
  refreshToken = (await client.signUp({ email })).headers['x-refresh-token'] as string;
  const context = `project:${owner.project._id.toHexString()}:token-secret`;
  const encrypted = openSecretBox('a key that nobody here has').encrypt('secret', context);
  await projectStore(test.app).updateOne(
    { _id: owner.project._id },
    { $set: { 'tokenSecrets.0.encrypted': encrypted } },
  );
  // The key's use is noted once a minute: before what the tests compare.
  await test.app.backgroundTasks.idle();
  test.app.cache.forgetAll(TOKEN_KEYS);
  test.app.cache.forgetAll(CALLERS);
});
afterAll(() => test.close());

/** Every stored document but the locks of sign-in, which count tries, when nothing is under way. */
async function readStore(): Promise<Record<string, unknown[]>> {
  await test.app.backgroundTasks.idle();
  const names = (await test.app.db.listNames()).filter((name) => !/lock|limit|counter/.test(name)).sort();
  const all = names.map(async (name) => [name, await test.app.db.collection(name).find({}).toArray()] as const);
  return Object.fromEntries(await Promise.all(all));
}

describe('a token secret that cannot be opened', () => {
  it.each([
    ['sign-up', () => client.signUp()],
    ['sign-in', () => client.logIn(email, PASSWORD)],
    ['refresh', () => client.refresh(refreshToken)],
  ])('%s: answers 500 and stores nothing', async (_what, send) => {
    const before = await readStore();
    const answer = await send();
    expect(answer).toMatchObject({ status: 500, body: { code: 'INTERNAL' } });
    expect(await readStore()).toEqual(before);
  });
});
