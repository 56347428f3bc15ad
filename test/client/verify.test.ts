import { ObjectId } from 'bson';
import { expect, it } from 'vitest';
import { createClient } from '../world/client.js';
import { disableUser, findUser } from '../world/users.js';
import { buildProject } from '../helpers/build-project.js';
import { openTestApp } from '../helpers/open-test-app.js';

it('verifies tokens of others on a server: one request for many, half a minute at most, no failure kept', async () => {
  const test = await openTestApp({ settings: { BSVC_BCRYPT_COST: '4' } });
  try {
    const shop = await buildProject(test.app);
    const page = createClient({ url: test.url, key: shop.publishable });
    const user = await page.auth.signUp({ email: 'ann@example.test', password: 'correct horse battery' });
    const token = (await page.auth.token())!;
    let isDown = false;
    const paths: string[] = [];
    const server = createClient({
      url: test.url,
      key: shop.secret,
      retries: 0,
      fetch: (address, init) => {
        paths.push(new URL(String(address)).pathname);
        return isDown ? Promise.reject(new TypeError('down')) : fetch(address, init);
      },
    });
    isDown = true;
    await expect(server.auth.verify(token)).rejects.toMatchObject({ code: 'NETWORK' });
    isDown = false;
    const asked = [token, `Bearer ${token}`, `bearer ${token}`];
    const answers = await Promise.all(asked.map((each) => server.auth.verify(each)));
    expect(answers.map((each) => each?._id)).toEqual([user._id, user._id, user._id]);
    expect(paths).toEqual(['/api/userAuth/verify', '/api/userAuth/verify']);
    expect(server.auth.user).toBeNull();
    for (const none of [undefined, null, '', 'Basic abc', 'Bearer ', 'a b.c', `${'a'.repeat(5000)}.b.c`]) {
      expect(await server.auth.verify(none)).toBeNull();
    }
    expect(paths).toHaveLength(2);
    expect(await server.auth.verify(`${token}x`)).toBeNull();
    expect(await server.auth.verify(`${token}x`)).toBeNull();
    expect(paths).toHaveLength(3);
    await disableUser(test.app, shop.project, (await findUser(test.app, shop.project._id, new ObjectId(user._id)))!);
    const others = createClient({ url: test.url, key: shop.secret });
    expect(await others.auth.verify(token)).toBeNull();
    const wrong = createClient({ url: test.url, key: `${shop.secret.slice(0, -1)}_` });
    await expect(wrong.auth.verify(token)).rejects.toMatchObject({ code: 'API_KEY_INVALID' });
  } finally {
    await test.close();
  }
});
