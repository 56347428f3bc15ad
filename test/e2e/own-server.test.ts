import { execFile } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { changeProject } from '../world/projects.js';
import { buildProject } from '../helpers/build-project.js';
import { readExamples, readGuides } from '../helpers/guide-examples.js';
import { openTempDir } from '../helpers/temp-dir.js';
import { openUserClient } from '../helpers/user-client.js';
import { use, useTestApp } from '../helpers/use.js';

const run = promisify(execFile);

const test = await useTestApp({ settings: { BSVC_BCRYPT_COST: '4' } });
const shop = await buildProject(test.app);
const dir = use(await openTempDir());
const example = readExamples(readGuides().get('own-server.md')!).find(({ file }) => file === 'check-token.mjs');
await writeFile(join(dir.path, 'check-token.mjs'), example!.text);
await mkdir(join(dir.path, 'node_modules'));
const jose = join(dirname(createRequire(import.meta.url).resolve('jose/package.json')));
await symlink(jose, join(dir.path, 'node_modules', 'jose'));

/** What the guide's program prints of a token. */
async function check(token: string): Promise<string> {
  const env = { ...process.env, API: `${test.url}/api`, PUBLIC: shop.publishable };
  const { stdout } = await run(process.execPath, [join(dir.path, 'check-token.mjs'), token], { env });
  return stdout.trim();
}

describe('the guide’s check of a token by its signature', () => {
  it('knows the user, and refuses what bsvc did not sign for the project', async () => {
    await changeProject(test.app, shop.project, { signIn: { tokens: 'ES256' } });
    const { user, accessToken } = (await openUserClient(test, shop.publishable).signUp()).body as {
      user: { _id: string };
      accessToken: string;
    };
    expect(await check(accessToken)).toBe(`user ${user._id}, signed in with pwd`);
    const [head, claims, signature] = accessToken.split('.') as [string, string, string];
    const other = Buffer.from(JSON.stringify({ ...(JSON.parse(atob(claims)) as object), userId: '0'.repeat(24) }));
    expect(await check(`${head}.${other.toString('base64url')}.${signature}`)).toBe(
      'ERR_JWS_SIGNATURE_VERIFICATION_FAILED',
    );
    const foreign = await buildProject(test.app);
    await changeProject(test.app, foreign.project, { signIn: { tokens: 'ES256' } });
    const theirs = (await openUserClient(test, foreign.publishable).signUp()).body as { accessToken: string };
    expect(await check(theirs.accessToken)).toBe('ERR_JWKS_NO_MATCHING_KEY');
  });
});
