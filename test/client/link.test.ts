import { expect, it } from 'vitest';
import { createClient } from '../world/client.js';
import { buildProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { openTestApp } from '../helpers/open-test-app.js';
import { HOME, openSocialBrowser } from '../helpers/social-browser.js';
import { openSocialIssuer } from '../helpers/social-issuer.js';
import { openUserClient } from '../helpers/user-client.js';

it('links an identity to the account of the user, which it opens from then on', async () => {
  const clock = createFakeClock();
  const test = await openTestApp({ clock, settings: { BSVC_BCRYPT_COST: '4', BSVC_WEBHOOK_ALLOW_PRIVATE: 'true' } });
  const issuer = await openSocialIssuer();
  try {
    const shop = await buildProject(test.app);
    await openSocialBrowser(test, issuer, shop, openUserClient(test, shop.publishable));
    const open = () => createClient({ url: test.url, key: shop.publishable });
    const { auth } = open();
    const account = { email: 'ann@example.test', password: 'correct horse battery' };
    const ann = await auth.signUp(account);
    issuer.behaviour = { sub: 'ann-at-work', email: 'ann@work.example', emailVerified: true };
    /** What a browser does there; answers the `rtCode` that comes back to the page. */
    const visit = async (address: string): Promise<string> => {
      const back = await fetch(await issuer.visit(address), { redirect: 'manual' });
      const home = new URL(back.headers.get('location')!);
      expect(`${home.origin}${home.pathname}`).toBe(HOME);
      return home.searchParams.get('rtCode')!;
    };

    clock.advance(11 * 60_000);
    await expect(auth.link.start('acme')).rejects.toMatchObject({ code: 'STEP_UP_REQUIRED' });
    const rtCode = await visit(await auth.link.start('acme', { currentPassword: account.password, redirect: HOME }));
    const other = open();
    await other.auth.signUp({ ...account, email: 'bob@example.test' });
    await expect(other.auth.link.finish(rtCode)).rejects.toMatchObject({ code: 'SOCIAL_CODE_INVALID' });
    expect(await auth.link.finish(rtCode)).toMatchObject({ provider: 'acme' });
    await expect(auth.link.finish(rtCode)).rejects.toMatchObject({ code: 'SOCIAL_CODE_INVALID' });
    await auth.stepUp({ currentPassword: account.password });
    await expect(auth.link.start('nonesuch')).rejects.toMatchObject({ status: 404 });
    await expect(auth.link.start('..')).rejects.toMatchObject({ code: 'INVALID_NAME' });

    const enter = async (by: typeof auth): Promise<string> => {
      const out = await fetch(await by.socialUrl('acme', HOME), { redirect: 'manual' });
      const [cookie] = out.headers.getSetCookie().map((each) => each.split(';')[0]!);
      const back = await fetch(await issuer.visit(out.headers.get('location')!), {
        redirect: 'manual',
        headers: { cookie: cookie! },
      });
      return new URL(back.headers.get('location')!).searchParams.get('rtCode')!;
    };
    const page = open();
    expect((await page.auth.finishSocial(await enter(page.auth)))._id).toBe(ann._id);

    const { identities } = auth;
    expect(await identities.list()).toEqual([{ provider: 'acme', linkedAt: expect.any(String) as string }]);
    await expect(identities.unlink('..')).rejects.toMatchObject({ code: 'INVALID_NAME' });
    clock.advance(11 * 60_000);
    await expect(identities.unlink('acme')).rejects.toMatchObject({ code: 'STEP_UP_REQUIRED' });
    await identities.unlink('acme', { currentPassword: account.password });
    expect(await identities.list()).toEqual([]);
    // Whoever came in by it is out, and does not come back.
    await expect(page.auth.me()).rejects.toMatchObject({ status: 401 });
    expect(page.auth.user).toBeNull();
    expect((await auth.me())._id).toBe(ann._id);
    await expect(identities.unlink('acme', { currentPassword: account.password })).rejects.toMatchObject({
      status: 404,
    });

    // What an identity alone opens keeps it.
    const alone = open();
    issuer.behaviour = { sub: 'eve', email: 'eve@example.test', emailVerified: true };
    await alone.auth.finishSocial(await enter(alone.auth));
    await expect(alone.auth.identities.unlink('acme')).rejects.toMatchObject({
      status: 409,
      code: 'LAST_SIGN_IN_METHOD',
    });
  } finally {
    await issuer.close();
    await test.close();
  }
});
