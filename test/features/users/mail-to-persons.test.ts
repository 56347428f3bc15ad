import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { ROUTE_LISTS } from '../../../src/api.js';
import { MAX_MAILS_A_DAY, MAX_MAILS_AN_HOUR } from '../../../src/features/users/codes/mail-allowance.js';
import { listOutbox } from '../../../src/platform/mail-provider/outbox.js';
import { drainJobs } from '../../../src/worker.js';
import { buildProject } from '../../helpers/build-project.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { openTestApp } from '../../helpers/open-test-app.js';
import { openRandom } from '../../helpers/random.js';
import { bearer, buildEmail, countMails, openUserClient, PASSWORD, readMailedCode } from '../../helpers/user-client.js';
import { useTestApp } from '../../helpers/use.js';

const HOUR_MS = 3_600_000;
const STEPS = 220;

const clock = createFakeClock();

const test = await useTestApp({ clock, settings: { BSVC_ACCESS_TOKEN_TTL: '30d' } });
const owner = await buildProject(test.app);

/** Every route of end users that takes an address, with the body of its example. */
const ROUTES = ROUTE_LISTS.flatMap(({ routes }) => routes)
  .map((route) => ({ ...route, example: route.example as Record<string, unknown> | undefined }))
  .filter(({ path }) => path.startsWith('/api/userAuth/'))
  .filter(({ path, example }) => Object.hasOwn(example ?? {}, 'email') || path.includes('update-profile'));

describe('mails that requests with the publishable key cause', () => {
  it('are at most ten a day and three an hour to anybody, by whatever route, and notices to confirmed addresses only', async () => {
    expect(ROUTES.length).toBeGreaterThan(5);
    const random = openRandom(20_261_124);
    const users = openUserClient(test, owner.publishable);
    const people: string[] = [];
    const tokens: string[] = [];
    for (let n = 0; n < 2; n++) {
      const email = buildEmail('person');
      people.push(email);
      tokens.push(((await users.signUp({ email })).body as { accessToken: string }).accessToken);
    }
    const confirmed = people[0]!;
    await users.post(
      '/verify-email',
      { email: confirmed, otp: await readMailedCode(test, confirmed) },
      bearer(tokens[0]!),
    );
    clock.advance(2 * HOUR_MS);
    const strangers = [buildEmail('stranger')];
    const statuses = new Map<string, Set<number>>();
    for (let step = 0; step < STEPS; step++) {
      const { method, path, example = {} } = random.pick(ROUTES);
      const email = random.pick([...people, ...strangers]);
      const body = { ...example, email, password: PASSWORD, currentPassword: PASSWORD };
      if (path.endsWith('/update-profile')) delete (body as { password?: string }).password;
      const reply = await (request(test.server) as unknown as Record<string, (path: string) => request.Test>)[
        method.toLowerCase()
      ]!(path)
        .set('x-api-key', owner.publishable)
        .set(bearer(random.pick(tokens)))
        .send(body);
      statuses.set(path, (statuses.get(path) ?? new Set()).add(reply.status));
      await drainJobs(test.app);
      clock.advance(random.pick([0, 61_000, 61_000, 300_000, HOUR_MS / 5]));
    }
    const mails = await listOutbox(test.app, { limit: 100_000 });
    const most = { day: 0, hour: 0 };
    for (const to of new Set(mails.flatMap((mail) => mail.to))) {
      const times = mails
        .filter((mail) => mail.to.includes(to))
        .map(({ createdAt }) => createdAt.getTime())
        .sort((a, b) => a - b);
      for (const [at, time] of times.entries()) {
        const within = (ms: number): number => times.slice(0, at + 1).filter((each) => each > time - ms).length;
        most.day = Math.max(most.day, within(24 * HOUR_MS));
        // A signed-in person may change often: the notices go to an address that is the caller's own.
        if (to !== confirmed) most.hour = Math.max(most.hour, within(HOUR_MS));
      }
    }
    expect(most).toEqual({ day: MAX_MAILS_A_DAY, hour: MAX_MAILS_AN_HOUR });
    const notices = mails.filter(({ subject }) => subject.includes('is about to change'));
    expect(new Set(notices.flatMap(({ to }) => to))).toEqual(new Set([confirmed]));
    expect([...statuses].filter(([, seen]) => [...seen].some((status) => status >= 500))).toEqual([]);
  });
});

it('a code that is asked for again is for whoever asked for that address, and counts for nobody else', async () => {
  const fresh = await openTestApp({ clock });
  try {
    const { publishable, secret } = await buildProject(fresh.app);
    const [client, server] = [openUserClient(fresh, publishable), openUserClient(fresh, secret)];
    await server.signUp({ email: 'ann@example.test', emailVerified: true });
    const { accessToken } = (await client.logIn('ann@example.test')).body as { accessToken: string };
    const change = async (email: string): Promise<unknown> => {
      const body = { email, currentPassword: PASSWORD };
      await client.send('patch', '/update-profile', body, bearer(accessToken));
      return countMails(fresh, email);
    };
    expect(await change('next@example.test')).toBe(1);
    clock.advance(61_000);
    await client.post('/resend-verification-otp', { email: 'somebody@example.test' });
    expect(await change('other@example.test')).toBe(1);
  } finally {
    await fresh.close();
  }
});
