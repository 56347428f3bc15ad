import { setTimeout as wait } from 'node:timers/promises';
import request from 'supertest';
import { describe, expect, it } from 'vitest';
import { setMailSettings } from '../../../src/features/mail/project-mail.js';
import { holdTurns } from '../../../src/features/mail/sending/provider-pace.js';
import { listOutbox } from '../../../src/platform/mail-provider/outbox.js';
import { drainJobs } from '../../../src/worker.js';
import { buildProject } from '../../helpers/build-project.js';
import { eventually } from '../../helpers/eventually.js';
import { createFakeClock } from '../../helpers/fake-clock.js';
import { slotsUsed } from '../../helpers/mail-quota.js';
import { startMailProviderDouble } from '../../helpers/mail-provider-double.js';
import { openTestApp } from '../../helpers/open-test-app.js';
import { use, useTestApp } from '../../helpers/use.js';

// Stands still, so that a machine’s speed moves no turn.
const clock = createFakeClock();
const provider = use(await startMailProviderDouble());
const test = await useTestApp({ clock, settings: { RESEND_BASE_URL: provider.url, BSVC_MAIL_FROM: 'a@b.co' } });
const owner = await buildProject(test.app);
owner.project = await setMailSettings(test.app, owner.project, { providerApiKey: 're_own' });

const call = (method: 'get' | 'post', path: string, body?: object) =>
  request(test.server)[method](`/api/mail${path}`).set('x-api-key', owner.secret).send(body);

describe('calls of a provider that asked for an hour of silence', () => {
  it.each([
    ['get', '/audiences', undefined],
    ['post', '/broadcasts/b1/send', {}],
    ['post', '/send-batch', [{ to: 'a@b.co', subject: 's', text: 't' }]],
  ] as const)('%s %s is answered 429 at once instead of waiting, and takes no slot', async (method, path, body) => {
    await holdTurns(test.app, owner.project, 3_600_000);
    const asked = call(method, path, body);
    const reply = await Promise.race([asked, wait(20_000, null, { ref: false })]);
    expect([reply?.status, (reply?.body as { code: string }).code]).toEqual([429, 'RATE_LIMITED']);
    expect(Number(reply!.headers['retry-after'])).toBe(3_600);
    expect(provider.calls).toEqual([]);
    expect(await slotsUsed(test.app, owner.project)).toBe(0);
  });
});

describe('silence that a provider asked for', () => {
  it('is of one key: calls by another are made', async () => {
    await holdTurns(test.app, owner.project, 3_600_000);
    const other = await buildProject(test.app);
    await setMailSettings(test.app, other.project, { providerApiKey: 're_free' });
    await request(test.server).get('/api/mail/audiences').set('x-api-key', other.secret).expect(200);
  });

  it('is not believed where a clock that has been set back since has put it further off than an hour', async () => {
    const nextAt = new Date(clock.now() + 2 * 3_600_000);
    await test.app.db.collection('mail_pace').updateMany({}, { $set: { nextAt } });
    expect((await call('get', '/audiences')).status).toBe(200);
  });

  it('is none where calls have no rate', async () => {
    const free = await openTestApp({
      settings: { RESEND_BASE_URL: provider.url, BSVC_MAIL_FROM: 'a@b.co', BSVC_MAIL_RATE: 'off' },
    });
    const { project, secret } = await buildProject(free.app);
    await holdTurns(free.app, await setMailSettings(free.app, project, { providerApiKey: 're_own' }), 3_600_000);
    await request(free.server).get('/api/mail/audiences').set('x-api-key', secret).expect(200);
    await free.close();
  });
});

describe('a batch, whose sender waits at a screen', () => {
  /** Resolves when a call has looked twice when its turn is: that it is not too far off, and then in line. */
  async function untilInLine(): Promise<void> {
    const { db } = test.app;
    const { collection } = db;
    let looks = 0;
    const watched = (name: string): object => {
      const store = collection(name);
      if (name !== 'mail_pace') return store;
      return new Proxy(store, {
        get(target, key) {
          if (key === 'findOne') looks++;
          return Reflect.get(target, key) as unknown;
        },
      });
    };
    Object.assign(db, { collection: watched });
    await eventually('it is in line', () => looks >= 2);
    Object.assign(db, { collection });
  }

  it('does not stand in line behind calls that can wait longer', async () => {
    owner.project = await setMailSettings(test.app, owner.project, { providerApiKey: 're_another' });
    const calls = provider.calls.length;
    await holdTurns(test.app, owner.project, 6_000);
    const inLine = call('get', '/audiences').then((reply) => reply);
    await untilInLine();
    const refused = await call('post', '/send-batch', [{ to: 'a@b.co', subject: 's', text: 't' }]);
    expect([refused.status, (refused.body as { code: string }).code]).toEqual([429, 'RATE_LIMITED']);
    expect(Number(refused.headers['retry-after'])).toBe(6);
    expect(provider.calls.slice(calls)).toEqual([]);
    expect((await inLine).status).toBe(200);
  });
});

describe('mail that leaves by no key', () => {
  it('has no pace: all that is queued goes at once', async () => {
    const slow = await openTestApp({ settings: { BSVC_MAIL_RATE: '1/1h', BSVC_MAIL_FROM: 'a@b.co' } });
    const { secret } = await buildProject(slow.app);
    for (let n = 0; n < 3; n++) {
      const mail = { to: 'a@b.co', subject: `mail ${n}`, text: 't' };
      await request(slow.server).post('/api/mail/send').set('x-api-key', secret).send(mail).expect(200);
    }
    await drainJobs(slow.app);
    expect(await listOutbox(slow.app)).toHaveLength(3);
    await slow.close();
  });
});
