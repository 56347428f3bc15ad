import { createHmac } from 'node:crypto';
import { ObjectId } from 'bson';
import request from 'supertest';
import { Webhook } from 'svix';
import { describe, expect, it } from 'vitest';
import { setMailSettings } from '../world/projects.js';
import { type MailStatus, mailLogStore } from '../world/stored.js';
import { buildProject } from '../helpers/build-project.js';
import { useTestApp } from '../helpers/use.js';

const SECRET = `whsec_${Buffer.from('the secret of the service, 32 by').toString('base64')}`;
const OWN_SECRET = `whsec_${Buffer.from('the secret of the project, 32 by').toString('base64')}`;

let sequence = 0;

const test = await useTestApp({ settings: { PROVIDER_WEBHOOK_SECRET: SECRET } });
const owner = await buildProject(test.app);

async function buildLog(status: MailStatus = 'sent', projectId: ObjectId = owner.project._id): Promise<string> {
  const providerEmailId = `email-${++sequence}`;
  await mailLogStore(test.app).insertOne({
    _id: new ObjectId(),
    projectId,
    providerEmailId,
    to: ['a@b.co'],
    subject: 's',
    status,
    usingByok: false,
    templateUsed: null,
    reason: null,
    createdAt: new Date(),
    sentAt: new Date(),
  });
  return providerEmailId;
}

const statusOf = async (providerEmailId: string) => (await mailLogStore(test.app).findOne({ providerEmailId }))!.status;

interface EventOptions {
  id?: string;
  secret?: string;
  at?: Date;
  project?: string;
  tamper?: (body: string) => string;
}

/** Signed by an independent implementation of the scheme. */
function receive(type: string, emailId: string, options: EventOptions = {}) {
  const { id = `msg_${++sequence}`, secret = SECRET, at = new Date(), project, tamper = (body) => body } = options;
  const body = JSON.stringify({
    type,
    created_at: at.toISOString(),
    data: { email_id: emailId, bounce: { message: 'mailbox full' } },
  });
  return request(test.server)
    .post(`/api/mail/webhook${project ? `?project=${project}` : ''}`)
    .set({
      'content-type': 'application/json',
      'svix-id': id,
      'svix-timestamp': String(Math.floor(at.getTime() / 1000)),
      'svix-signature': new Webhook(secret).sign(id, at, body),
    })
    .send(tamper(body));
}

describe('POST /api/mail/webhook', () => {
  const forward: [string, MailStatus, MailStatus][] = [
    ['email.sent', 'queued', 'sent'],
    ['email.delivered', 'sent', 'delivered'],
    ['email.bounced', 'sent', 'bounced'],
    ['email.complained', 'delivered', 'complained'],
    ['email.delivered', 'queued', 'delivered'],
    ['email.sent', 'delivered', 'delivered'],
    ['email.delivered', 'complained', 'complained'],
    ['email.delivered', 'bounced', 'bounced'],
    ['email.sent', 'failed', 'failed'],
    ['email.opened', 'sent', 'sent'],
  ];
  it.each(forward)('%s moves a log from %s to %s', async (type, before, after) => {
    const id = await buildLog(before);
    const reply = await receive(type, id);
    expect([reply.status, reply.body.success]).toEqual([200, true]);
    expect(await statusOf(id)).toBe(after);
  });

  it('is harmless in any order and repeated', async () => {
    const id = await buildLog('queued');
    const events = ['email.complained', 'email.sent', 'email.delivered', 'email.sent', 'email.complained'];
    await Promise.all([...events, ...events].map((type, index) => receive(type, id, { id: `repeat_${index % 5}` })));
    expect(await statusOf(id)).toBe('complained');
  });

  it('keeps why a mail bounced', async () => {
    const id = await buildLog();
    await receive('email.bounced', id);
    expect((await mailLogStore(test.app).findOne({ providerEmailId: id }))!.reason).toBe('mailbox full');
  });

  const bad: [string, EventOptions][] = [
    ['another secret', { secret: OWN_SECRET }],
    ['a flipped byte', { tamper: (body) => body.replace('email.', 'emaiL.') }],
    ['a timestamp of six minutes ago', { at: new Date(Date.now() - 6 * 60_000) }],
    ['a timestamp six minutes ahead', { at: new Date(Date.now() + 6 * 60_000) }],
  ];
  it.each(bad)('answers 400 to %s and changes nothing', async (_what, options) => {
    const id = await buildLog();
    const reply = await receive('email.bounced', id, options);
    expect([reply.status, reply.body.code]).toEqual([400, 'INVALID_SIGNATURE']);
    expect(await statusOf(id)).toBe('sent');
  });

  it('answers 400 to a missing signature, and to a signed body that is no JSON', async () => {
    expect((await request(test.server).post('/api/mail/webhook').send({ type: 'email.bounced' })).status).toBe(400);
    const [id, timestamp, body] = ['msg_x', String(Math.floor(Date.now() / 1000)), 'not json'];
    const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64');
    const signature = `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
    const reply = await request(test.server)
      .post('/api/mail/webhook')
      .set({
        'svix-id': id,
        'svix-timestamp': timestamp,
        'svix-signature': signature,
        'content-type': 'application/json',
      })
      .send(body);
    expect(reply.status).toBe(400);
  });

  it.each([
    ['of the event', { id: 'x'.repeat(4_000) }, 'email-1'],
    ['of the mail', {}, 'x'.repeat(100_000)],
  ])('ignores what no provider would send: an id %s of thousands of characters', async (_what, options, emailId) => {
    const reply = await receive('email.delivered', emailId, options);
    expect([reply.status, reply.body.message]).toEqual([200, 'Webhook ignored: not an event that is handled']);
  });

  it('accepts one good signature among several, as after a rotation', async () => {
    const id = await buildLog();
    const at = new Date();
    const body = JSON.stringify({ type: 'email.delivered', data: { email_id: id } });
    const signatures = [OWN_SECRET, SECRET].map((secret) => new Webhook(secret).sign('msg_two', at, body));
    const reply = await request(test.server)
      .post('/api/mail/webhook')
      .set({
        'svix-id': 'msg_two',
        'svix-timestamp': String(Math.floor(at.getTime() / 1000)),
        'svix-signature': signatures.join(' '),
        'content-type': 'application/json',
      })
      .send(body);
    expect(reply.status).toBe(200);
    expect(await statusOf(id)).toBe('delivered');
  });

  it('without a secret answers 200, says that it ignored the event, and processes nothing', async () => {
    const silent = await useTestApp();
    const reply = await request(silent.server)
      .post('/api/mail/webhook')
      .send({ type: 'email.bounced', data: { email_id: 'x' } });
    expect([reply.status, reply.body]).toEqual([
      200,
      { success: true, message: 'Webhook ignored: the webhook secret is not configured' },
    ]);
  });

  it('verifies a project’s own events with the project’s secret, and touches that project’s logs only', async () => {
    await setMailSettings(test.app, owner.project, { webhookSecret: OWN_SECRET });
    const project = owner.project._id.toHexString();
    const own = await buildLog();
    expect((await receive('email.delivered', own, { secret: SECRET, project })).status).toBe(400);
    expect((await receive('email.delivered', own, { secret: OWN_SECRET, project })).status).toBe(200);
    expect(await statusOf(own)).toBe('delivered');
    const other = await buildLog('sent', (await buildProject(test.app)).project._id);
    expect((await receive('email.bounced', other, { secret: OWN_SECRET, project })).status).toBe(200);
    expect(await statusOf(other)).toBe('sent');
  });
});
