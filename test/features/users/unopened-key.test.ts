import { describe, expect, it } from 'vitest';
import { projectStore } from '../../../src/features/projects/project-store.js';
import { openSecretBox } from '../../../src/platform/secrets/secret-box.js';
import { buildProject } from '../../helpers/build-project.js';
import { buildEmail, openUserClient, PASSWORD } from '../../helpers/user-client.js';
import { useTestApp } from '../../helpers/use.js';
import { CALLERS } from '../../../src/features/projects/project-store.js';
import { TOKEN_KEYS } from '../../../src/features/projects/token-secret.js';

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' } });
const owner = await buildProject(test.app);
const client = openUserClient(test, owner.publishable);
const email = buildEmail();
const refreshToken = (await client.signUp({ email })).headers['x-refresh-token'] as string;
const context = `project:${owner.project._id.toHexString()}:token-secret`;
const encrypted = openSecretBox('a key that nobody here has').encrypt('secret', context);
await projectStore(test.app).updateOne({ _id: owner.project._id }, { $set: { 'tokenSecrets.0.encrypted': encrypted } });
// The key's use is noted once a minute: before what the tests compare.
await test.app.backgroundTasks.idle();
test.app.cache.forgetAll(TOKEN_KEYS);
test.app.cache.forgetAll(CALLERS);

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
