import type { ObjectId } from 'bson';
import request from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import { drainJobs, listOutbox, holdTurns } from '../world/jobs.js';
import { setMailSettings, setTemplate, updateProject } from '../world/projects.js';
import { jobStore, mailLogStore, templateStore } from '../world/stored.js';
import { buildProject, type TestProject } from '../helpers/build-project.js';
import { createFakeClock } from '../helpers/fake-clock.js';
import { slotsUsed } from '../helpers/mail-quota.js';
import { startMailProviderDouble } from '../helpers/mail-provider-double.js';
import { use, useTestApp } from '../helpers/use.js';

let owner: TestProject;

const provider = use(await startMailProviderDouble());
const test = await useTestApp({
  settings: {
    RESEND_API_KEY: 're_platform',
    RESEND_BASE_URL: provider.url,
    BSVC_MAIL_FROM: 'Service <no-reply@bsvc.test>',
    BSVC_MAIL_RATE: 'off',
  },
});
beforeEach(async () => {
  // What an earlier test left queued must not meet this one's provider.
  await drainJobs(test.app);
  provider.moods.length = 0;
  owner = await buildProject(test.app);
});

const send = (body: object, path = '/api/mail/send', key = owner.secret) =>
  request(test.server).post(path).set('x-api-key', key).send(body);
const mail = (more: object = {}) => ({ to: 'ann@example.com', subject: 'Hello', text: 'Hi Ann', ...more });
const used = () => slotsUsed(test.app, owner.project);
const onlyLog = async () => (await mailLogStore(test.app).findOne({ projectId: owner.project._id }))!;

/** Puts a key back to where a process that was killed leaves it: begun, without an answer, long ago. */
const cutOff = async (then?: (id: ObjectId) => Promise<unknown>): Promise<void> => {
  const keys = test.app.db.collection<{ _id: string; projectId: ObjectId; ids: ObjectId[] }>('idempotency_keys');
  const record = (await keys.findOne({ projectId: owner.project._id }))!;
  await keys.updateOne({ _id: record._id }, { $set: { answer: null, leaseUntil: new Date(0) } });
  await then?.(record.ids[0]!);
};

const ONE_LINE = 'The subject must be one line of text';

describe('an Idempotency-Key of POST /api/mail/send', () => {
  const once = (body: object = mail(), key = 'once') => send(body).set('Idempotency-Key', key);
  const logs = () => mailLogStore(test.app).countDocuments({ projectId: owner.project._id });

  it('answers as before, and sends nothing again', async () => {
    const all = await Promise.all([once(), once(), once()]);
    const first = all.find(({ status }) => status === 200)!;
    for (const { status, body } of all) {
      expect([status, body.code ?? body.data]).toEqual(
        status === 409 ? [409, 'REQUEST_UNDER_WAY'] : [200, first.body.data],
      );
    }
    expect((await once()).body).toEqual(first.body);
    expect([await logs(), await used()]).toEqual([1, 1]);
    expect((await once(mail(), 'another')).body.data.monthlyUsage).toBe(2);
    const other = await once(mail({ text: 'Another' }));
    expect([other.status, other.body.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    expect((await once(mail(), 'two words')).body.code).toBe('INVALID_IDEMPOTENCY_KEY');
  });

  it('is free again when the mail was refused', async () => {
    expect((await once(mail({ subject: undefined, text: undefined, templateName: 'none' }))).status).toBe(404);
    expect((await once()).status).toBe(200);
  });

  it.each([
    ['before its answer was noted', undefined],
    ['before its mail was handed to the worker', () => jobStore(test.app).deleteMany({ name: 'mail.deliver' })],
    ['between its slot and its log', (id: ObjectId) => mailLogStore(test.app).deleteOne({ _id: id })],
  ])('stands for one mail when the first attempt was cut off %s', async (_when, then) => {
    const before = provider.accepted.length;
    const first = await once();
    await cutOff(then);
    const all = await Promise.all([once(), once()]);
    const again = all.find(({ status }) => status === 200)!;
    expect(again.body).toEqual(first.body);
    expect((await once()).body).toEqual(first.body);
    await drainJobs(test.app);
    expect(provider.accepted.length - before).toBe(1);
    expect([await logs(), await used(), (await onlyLog()).status]).toEqual([1, 1, 'sent']);
  });
});

describe('POST /api/mail/send', () => {
  it('queues the mail, takes a slot, and the worker sends it once', async () => {
    const reply = await send(mail({ replyTo: ['help@example.com'], html: '<p>Hi</p>' }));
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({
      success: true,
      data: { id: expect.stringMatching(/^[0-9a-f]{24}$/), provider: 'default', monthlyUsage: 1, monthlyLimit: 50 },
      message: 'Mail queued successfully.',
    });
    expect((await onlyLog()).status).toBe('queued');
    await drainJobs(test.app);
    await drainJobs(test.app);
    const sent = provider.accepted.filter((one) => one.subject === 'Hello' && one.html === '<p>Hi</p>');
    expect(sent).toMatchObject([
      {
        from: 'Service <no-reply@bsvc.test>',
        to: ['ann@example.com'],
        text: 'Hi Ann',
        reply_to: ['help@example.com'],
        key: 're_platform',
      },
    ]);
    expect(await onlyLog()).toMatchObject({ status: 'sent', providerEmailId: sent[0]!.id });
  });

  it('answers 403 to a publishable key and 401 to none', async () => {
    const publishable = await send(mail(), '/api/mail/send', owner.publishable);
    expect([publishable.status, publishable.body.code]).toEqual([403, 'SECRET_KEY_REQUIRED']);
    expect((await request(test.server).post('/api/mail/send').send(mail())).status).toBe(401);
  });

  const refused: [string, object, string][] = [
    ['no recipient', { subject: 's', text: 't' }, 'Recipient is required'],
    ['an empty list of recipients', mail({ to: [] }), 'Recipient list cannot be empty'],
    ['an empty list of reply addresses', mail({ replyTo: [] }), 'Reply-to list cannot be empty'],
    ['a bad address', mail({ to: 'nobody' }), 'Validation failed: to must be an e-mail address'],
    ['a bad address in a list', mail({ to: ['a@b.co', { $gt: '' }] }), 'Validation failed: to.1 must be a String'],
    [
      'a line break in an address',
      mail({ to: 'a@b.co\r\nBcc: evil@x.test' }),
      'Validation failed: to must be an e-mail address',
    ],
    [
      'a line break in the reply address',
      mail({ replyTo: 'a@b.co\nX: y' }),
      'Validation failed: replyTo must be an e-mail address',
    ],
    ['a next-line character in the subject', mail({ subject: 'a\u0085Bcc: evil@x.test' }), ONE_LINE],
    ['a line separator in the subject', mail({ subject: 'a\u2028b' }), ONE_LINE],
    ['a paragraph separator in the subject', mail({ subject: 'a\u2029b' }), ONE_LINE],
    ['a vertical tab in the subject', mail({ subject: 'a\u000bb' }), ONE_LINE],
    ['a C1 control in the subject', mail({ subject: 'a\u009bb' }), ONE_LINE],
    ['a line break in the subject', mail({ subject: 'a\r\nBcc: evil@x.test' }), 'The subject must be one line of text'],
    ['no subject', { to: 'a@b.co', text: 't' }, 'Subject is required'],
    ['a subject of spaces', mail({ subject: '   ' }), 'Subject is required'],
    ['neither html nor text', { to: 'a@b.co', subject: 's' }, 'Provide at least one of html or text content.'],
    ['a body that renders to nothing', mail({ text: '{{nothing}}' }), 'Provide at least one of html or text content.'],
    ['a subject that renders to nothing', mail({ subject: '{{nothing}}' }), 'Subject is required'],
    [
      'a subject that becomes two lines',
      mail({ subject: '{{x}}', variables: { x: 'a\r\nBcc: b@c.de' } }),
      'The subject must be one line of text',
    ],
    [
      'both templateId and templateName',
      mail({ templateId: 'a'.repeat(24), templateName: 'welcome' }),
      'Give either templateId or templateName, not both',
    ],
    ['a bad templateId', mail({ templateId: 'welcome' }), 'templateId must be 24 hexadecimal digits'],
    [
      'variables that are no object',
      mail({ variables: [1] }),
      'Validation failed: variables must be an Object or null',
    ],
    [
      'a subject that is no text',
      mail({ subject: { $gt: '' } }),
      'Validation failed: subject must be a String or null',
    ],
  ];
  it.each(refused)('answers 400 to %s, takes no slot and sends nothing', async (_what, body, message) => {
    const before = provider.calls.length;
    const reply = await send(body);
    expect([reply.status, reply.body.message]).toEqual([400, message]);
    await drainJobs(test.app);
    expect(await used()).toBe(0);
    expect(provider.calls.length).toBe(before);
  });

  it('answers 404 to an unknown template', async () => {
    for (const body of [{ templateName: 'nope' }, { templateId: 'a'.repeat(24) }]) {
      const reply = await send({ to: 'a@b.co', ...body });
      expect([reply.status, reply.body.code]).toEqual([404, 'TEMPLATE_NOT_FOUND']);
    }
    expect(await used()).toBe(0);
  });

  it('looks a template up by name: the project’s, then the system’s, then one embedded in an older project', async () => {
    const { project } = owner;
    const by = async (templateName: string) =>
      (await send({ to: 'a@b.co', templateName, variables: { name: 'Ann' } })).body.data?.templateUsed;
    const embedded = (name: string) =>
      templateStore(test.app).insertOne({
        projectId: project._id,
        name,
        scope: 'embedded',
        subject: 's',
        text: 't',
        updatedAt: new Date(),
      } as never);
    expect(await by('welcome')).toEqual({ id: null, scope: 'system', key: 'welcome', name: 'welcome' });
    await embedded('welcome');
    await embedded('old');
    expect(await by('welcome')).toMatchObject({ scope: 'system' });
    expect(await by('old')).toMatchObject({ scope: 'embedded', name: 'old' });
    const own = await setTemplate(test.app, project, 'welcome', { subject: 'Hi {{name}}', text: 'own' });
    expect(await by('welcome')).toEqual({
      id: own._id.toHexString(),
      scope: 'project',
      key: 'welcome',
      name: 'welcome',
    });
    const byId = await send({ to: 'a@b.co', templateId: own._id.toHexString(), variables: { name: 'Ann' } });
    expect(byId.body.data.templateUsed.scope).toBe('project');
    const other = await buildProject(test.app);
    expect(
      (await send({ to: 'a@b.co', templateId: own._id.toHexString() }, '/api/mail/send', other.secret)).status,
    ).toBe(404);
  });

  it('gives the last slot to one of 200 and 429 to the rest', async () => {
    await updateProject(test.app, owner.project.name, { limits: { mail: 3 } });
    await send(mail());
    await send(mail());
    const replies = await Promise.all(Array.from({ length: 200 }, () => send(mail())));
    expect(replies.filter((reply) => reply.status === 200)).toHaveLength(1);
    const rest = replies.filter((reply) => reply.status !== 200);
    expect(new Set(rest.map((reply) => `${reply.status} ${reply.body.code}`))).toEqual(
      new Set(['429 MAIL_QUOTA_EXCEEDED']),
    );
    expect(Number(rest[0]!.headers['retry-after'])).toBeGreaterThan(0);
    expect(await used()).toBe(3);
  });

  it('sends with the project’s own key and sender when it has them, and back again when they are cleared', async () => {
    await setMailSettings(test.app, owner.project, {
      providerApiKey: 're_own_key',
      providerFromEmail: 'shop@example.com',
    });
    const reply = await send(mail({ subject: 'own' }));
    expect(reply.body.data.provider).toBe('byok');
    await drainJobs(test.app);
    expect(provider.accepted.find((one) => one.subject === 'own')).toMatchObject({
      key: 're_own_key',
      from: 'shop@example.com',
    });
    await setMailSettings(test.app, owner.project, { providerApiKey: null, providerFromEmail: null });
    expect((await send(mail())).body.data.provider).toBe('default');
  });
});

describe('what the provider’s answer does to log and slot', () => {
  const fates: [string, { status: number; name?: string } | 'reset', string, number][] = [
    ['422 is final: failed, refunded', { status: 422 }, 'failed', 0],
    ['403 is final: failed, refunded', { status: 403, name: 'invalid_from_address' }, 'failed', 0],
    ['429 is tried again: still queued, slot kept', { status: 429, name: 'rate_limit_exceeded' }, 'queued', 1],
    ['500 is tried again: still queued, slot kept', { status: 500 }, 'queued', 1],
    ['no answer is tried again: still queued, slot kept', 'reset', 'queued', 1],
  ];
  it.each(fates)('%s', async (_what, mood, status, slots) => {
    provider.moods.push(mood);
    await send(mail());
    await drainJobs(test.app);
    expect((await onlyLog()).status).toBe(status);
    expect(await used()).toBe(slots);
  });

  it('sends one mail when the provider accepted it but the answer was lost', async () => {
    const clock = createFakeClock();
    const later = await useTestApp({
      clock,
      settings: { RESEND_API_KEY: 're_platform', RESEND_BASE_URL: provider.url, BSVC_MAIL_FROM: 'a@b.co' },
    });
    const project = await buildProject(later.app);
    provider.moods.push('accept-silently');
    await request(later.server)
      .post('/api/mail/send')
      .set('x-api-key', project.secret)
      .send(mail({ subject: 'only once' }));
    await drainJobs(later.app);
    clock.advance(10_000);
    await drainJobs(later.app);
    expect(provider.accepted.filter((one) => one.subject === 'only once')).toHaveLength(1);
    expect(await mailLogStore(later.app).findOne({ projectId: project.project._id })).toMatchObject({ status: 'sent' });
  });
});

describe('a worker that dies between the provider’s acceptance and its own note of it', () => {
  it('is followed by another that makes no second mail of it', async () => {
    const clock = createFakeClock();
    const double = await startMailProviderDouble();
    const other = await useTestApp({
      clock,
      settings: { RESEND_API_KEY: 're_platform', RESEND_BASE_URL: double.url, BSVC_MAIL_FROM: 'a@b.co' },
    });
    const project = await buildProject(other.app);
    double.moods.push('accept-and-hang');
    await request(other.server).post('/api/mail/send').set('x-api-key', project.secret).send(mail());
    // The first worker never gets further than this, as if it were dead.
    const stuck = drainJobs(other.app);
    await double.hung;
    // Its lease runs out, the job is taken back, and after its pause another worker has it.
    clock.advance(10 * 60_000);
    await drainJobs(other.app);
    clock.advance(60_000);
    await drainJobs(other.app);
    expect(double.accepted).toHaveLength(1);
    expect(await mailLogStore(other.app).findOne({ projectId: project.project._id })).toMatchObject({
      status: 'sent',
      providerEmailId: double.accepted[0]!.id,
    });
    expect(await slotsUsed(other.app, project.project)).toBe(1);
    await double.close();
    await stuck;
    expect(await mailLogStore(other.app).findOne({ projectId: project.project._id })).toMatchObject({ status: 'sent' });
  });
});

describe('POST /api/mail/send-batch', () => {
  const batch = (items: unknown) => send(items as object, '/api/mail/send-batch');

  it('answers each item for itself, in order, and refunds the refused ones', async () => {
    const reply = await batch([mail({ to: 'a@b.co' }), mail({ to: 'refused@b.co' }), mail({ to: 'c@b.co' })]);
    expect(reply.status).toBe(200);
    expect(reply.body.data).toEqual([
      { id: expect.any(String) },
      { error: { message: expect.stringContaining('validation_error: Invalid `to` field') } },
      { id: expect.any(String) },
    ]);
    expect(await used()).toBe(2);
  });

  const refused: [string, unknown, string][] = [
    ['an empty batch', [], 'Batch cannot be empty'],
    ['101 items', Array.from({ length: 101 }, () => mail()), 'Max 100 emails per batch'],
    ['an item without subject', [mail(), { to: 'a@b.co', text: 't' }], 'Subject is required'],
    ['an item without content', [{ to: 'a@b.co', subject: 's' }], 'Provide html or text'],
    ['an item with a template', [mail({ templateName: 'welcome' })], 'Templates are not supported in a batch'],
    ['an object instead of a list', mail(), 'Validation failed: body must be an Array'],
    ['an item that is no object', ['x'], 'Validation failed: 0 must be an Object'],
    ['a line break in a subject', [mail({ subject: 'a\nb' })], 'The subject must be one line of text'],
  ];
  it.each(refused)('answers 400 to %s and sends nothing', async (_what, items, message) => {
    const reply = await batch(items);
    expect([reply.status, reply.body.message]).toEqual([400, message]);
    expect(await used()).toBe(0);
  });

  const batchCalls = () => provider.calls.filter(({ path }) => path === '/emails/batch');

  it('hands a hundred items over by one call', async () => {
    await updateProject(test.app, owner.project.name, { plan: 'pro' });
    const before = batchCalls().length;
    const reply = await batch(Array.from({ length: 100 }, (_, at) => mail({ subject: `mail ${at}` })));
    expect(batchCalls().length - before).toBe(1);
    const ids = (reply.body.data as { id: string }[]).map(({ id }) => id);
    expect(new Set(ids).size).toBe(100);
    const bySubject = new Map(provider.accepted.map(({ id, subject }) => [id, subject]));
    expect(ids.map((id) => bySubject.get(id))).toEqual(ids.map((_, at) => `mail ${at}`));
    expect(await mailLogStore(test.app).countDocuments({ projectId: owner.project._id, status: 'sent' })).toBe(100);
  });

  it.each([
    ['refuses the call', { status: 422 }, 0],
    ['fails', { status: 500 }, 2],
    ['does not answer', 'accept-silently', 2],
  ] as const)(
    'tells every item when the provider %s, and refunds only what was surely not sent',
    async (_, mood, left) => {
      provider.moods.push(mood);
      const reply = await batch([mail(), mail()]);
      const failed = { error: { message: expect.any(String) as string } };
      expect([reply.status, reply.body.data]).toEqual([200, [failed, failed]]);
      expect(await used()).toBe(left);
    },
  );

  it('answers a repeated Idempotency-Key as before, and sends nothing again', async () => {
    const withKey = (items: unknown, key = 'once') => batch(items).set('Idempotency-Key', key);
    const before = batchCalls().length;
    const items = [mail({ to: 'a@b.co' }), mail({ to: 'refused@b.co' })];
    const all = await Promise.all([withKey(items), withKey(items), withKey(items)]);
    const first = all.find(({ status }) => status === 200)!;
    for (const { status, body } of all)
      expect([status, body.code ?? body.data]).toEqual(
        status === 409 ? [409, 'REQUEST_UNDER_WAY'] : [200, first.body.data],
      );
    expect((await withKey(items)).body.data).toEqual(first.body.data);
    const other = await withKey([mail()]);
    expect([other.status, other.body.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    expect((await withKey(items, 'ü'.repeat(2))).status).toBe(400);
    expect([batchCalls().length - before, await used()]).toEqual([1, 1]);
  });

  it('notes why an item was refused, at its own log', async () => {
    await send(mail({ subject: 'waits' })).expect(200);
    await batch([mail({ to: 'refused@b.co', subject: 'refused' })]).expect(200);
    const logs = await mailLogStore(test.app).find({ projectId: owner.project._id }).toArray();
    const bySubject = new Map(logs.map(({ subject, status, reason }) => [subject, { status, reason }]));
    expect(bySubject.get('waits')).toEqual({ status: 'queued', reason: null });
    expect(bySubject.get('refused')).toEqual({
      status: 'failed',
      reason: expect.stringContaining('Invalid') as string,
    });
  });

  it('leaves by the project’s own key where it has one, and the log says so', async () => {
    const shown = async (): Promise<unknown> => {
      const reply = await request(test.server).get('/api/mail/logs').set('x-api-key', owner.secret).expect(200);
      return (reply.body.data as { items: { usingByok: boolean }[] }).items.map(({ usingByok }) => usingByok);
    };
    await batch([mail()]).expect(200);
    await setMailSettings(test.app, owner.project, { providerApiKey: 're_of_a_batch' });
    await batch([mail(), mail()]).expect(200);
    expect(batchCalls().at(-1)).toMatchObject({ key: 're_of_a_batch' });
    expect(await shown()).toEqual([true, true, false]);
  });

  it('frees the Idempotency-Key when nothing was sent', async () => {
    await updateProject(test.app, owner.project.name, { limits: { mail: 0 } });
    expect((await batch([mail()]).set('Idempotency-Key', 'later')).status).toBe(429);
    await updateProject(test.app, owner.project.name, { limits: { mail: 5 } });
    expect((await batch([mail()]).set('Idempotency-Key', 'later')).status).toBe(200);
  });

  it('goes before what is queued, and answers 429 at once when the provider asked for a long pause', async () => {
    const paced = await useTestApp({
      settings: { RESEND_API_KEY: 're_paced', RESEND_BASE_URL: provider.url, BSVC_MAIL_FROM: 'a@b.test' },
    });
    const { project, secret } = await buildProject(paced.app);
    const post = () =>
      request(paced.server).post('/api/mail/send-batch').set('x-api-key', secret).send([mail(), mail()]);
    expect((await post()).status).toBe(200);
    await holdTurns(paced.app, project, 600_000);
    const refused = await post();
    expect([refused.status, refused.body.code]).toEqual([429, 'RATE_LIMITED']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(500);
    expect(await slotsUsed(paced.app, project)).toBe(2);
  });

  it('answers 429 and sends nothing when not all items fit the quota', async () => {
    await updateProject(test.app, owner.project.name, { limits: { mail: 2 } });
    const reply = await batch([mail(), mail(), mail()]);
    expect([reply.status, reply.body.code]).toEqual([429, 'MAIL_QUOTA_EXCEEDED']);
    expect(await used()).toBe(0);
  });

  it('answers 429 and sends nothing when not all items fit what is left of the quota', async () => {
    await updateProject(test.app, owner.project.name, { limits: { mail: 3 } });
    expect((await batch([mail()])).status).toBe(200);
    const reply = await batch([mail(), mail(), mail()]);
    expect([reply.status, reply.body.code]).toEqual([429, 'MAIL_QUOTA_EXCEEDED']);
    expect(await used()).toBe(1);
    expect((await batch([mail(), mail()])).status).toBe(200);
    expect((await batch([mail()])).status).toBe(429);
    expect(await used()).toBe(3);
  });
});

describe('GET /api/mail/logs', () => {
  const get = (path: string, key = owner.secret) => request(test.server).get(path).set('x-api-key', key);

  it('lists the latest 50, newest first', async () => {
    await updateProject(test.app, owner.project.name, { plan: 'pro' });
    for (let i = 1; i <= 52; i++) await send(mail({ subject: `mail ${i}` }));
    const { body } = await get('/api/mail/logs');
    expect(body.data).toMatchObject({ total: 52, page: 1, limit: 50 });
    expect(body.data.items).toHaveLength(50);
    expect(body.data.items[0]).toEqual({
      id: expect.any(String),
      providerEmailId: null,
      to: 'ann@example.com',
      subject: 'mail 52',
      status: 'queued',
      usingByok: false,
      templateUsed: null,
      reason: null,
      sentAt: expect.any(String),
    });
    expect((await get('/api/mail/logs?page=2')).body.data.items).toHaveLength(2);
    await drainJobs(test.app);
  });

  it('answers the live status by the provider’s id, and 404 to another project', async () => {
    await send(mail());
    await drainJobs(test.app);
    const { providerEmailId } = await onlyLog();
    const reply = await get(`/api/mail/logs/${providerEmailId}`);
    expect(reply.body).toMatchObject({
      success: true,
      data: {
        dbLog: { providerEmailId, status: 'sent' },
        last_event: 'delivered',
        providerStatus: { id: providerEmailId },
      },
    });
    const other = await buildProject(test.app);
    expect((await get(`/api/mail/logs/${providerEmailId}`, other.secret)).status).toBe(404);
  });
});

describe('the default provider', () => {
  it('works before any sender is set', async () => {
    const plain = await useTestApp();
    const project = await buildProject(plain.app, 'Corner shop');
    const reply = await request(plain.server)
      .post('/api/mail/send')
      .set('x-api-key', project.secret)
      .send({ to: 'ann@example.com', templateName: 'welcome', variables: { name: 'Ann' } });
    expect(reply.status).toBe(200);
    await drainJobs(plain.app);
    expect(await listOutbox(plain.app)).toMatchObject([{ from: 'Corner shop <no-reply@localhost>' }]);
  });

  it('answers each item of a batch, in order, however many there are', async () => {
    const plain = await useTestApp({ settings: { BSVC_MAIL_FROM: 'a@b.co' } });
    const project = await buildProject(plain.app);
    const items = Array.from({ length: 12 }, (_, at) => mail({ subject: `mail ${at}` }));
    const reply = await request(plain.server).post('/api/mail/send-batch').set('x-api-key', project.secret).send(items);
    const ids = (reply.body.data as { id: string }[]).map(({ id }) => id);
    const logs = await mailLogStore(plain.app).find({ projectId: project.project._id }).toArray();
    const known = new Map(logs.map(({ providerEmailId, subject }) => [providerEmailId, subject]));
    expect(ids.map((id) => known.get(id))).toEqual(items.map((_, at) => `mail ${at}`));
    const subjects = (await listOutbox(plain.app)).map(({ subject }) => subject);
    expect(subjects.sort()).toEqual(items.map((_, at) => `mail ${at}`).sort());
    expect(new Set(logs.map(({ status }) => status))).toEqual(new Set(['sent']));
    expect(await slotsUsed(plain.app, project.project)).toBe(12);
  });

  it('asks for a sender once mails really leave', async () => {
    const real = await useTestApp({ settings: { RESEND_API_KEY: 're_platform', RESEND_BASE_URL: provider.url } });
    const project = await buildProject(real.app);
    const reply = await request(real.server).post('/api/mail/send').set('x-api-key', project.secret).send(mail());
    expect([reply.status, reply.body.message]).toEqual([400, expect.stringContaining('There is no sender')]);
  });

  it('keeps mails in the outbox, encrypted in the database', async () => {
    const plain = await useTestApp({ settings: { BSVC_MAIL_FROM: 'a@b.co' } });
    const project = await buildProject(plain.app);
    await request(plain.server)
      .post('/api/mail/send')
      .set('x-api-key', project.secret)
      .send(mail({ text: 'a private word' }));
    await drainJobs(plain.app);
    expect(await listOutbox(plain.app)).toMatchObject([
      { to: ['ann@example.com'], subject: 'Hello', text: 'a private word' },
    ]);
    for (const name of ['mail_outbox', 'mail_logs', 'jobs']) {
      expect(JSON.stringify(await plain.app.db.collection(name).find({}).toArray())).not.toContain('a private word');
    }
  });
});
