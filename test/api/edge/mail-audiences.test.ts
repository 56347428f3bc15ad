import request from 'supertest';
import { beforeEach, describe, expect, it } from 'vitest';
import { setMailSettings, updateProject } from '../../world/projects.js';
import { buildProject, type TestProject } from '../../helpers/build-project.js';
import { slotsUsed } from '../../helpers/mail-quota.js';
import { startMailProviderDouble } from '../../helpers/mail-provider-double.js';
import { use, useTestApp } from '../../helpers/use.js';

let owner: TestProject;

const provider = use(await startMailProviderDouble());
const test = await useTestApp({
  settings: { RESEND_BASE_URL: provider.url, BSVC_MAIL_FROM: 'server@bsvc.test', BSVC_MAIL_RATE: 'off' },
});
beforeEach(async () => {
  owner = await buildProject(test.app);
  await setMailSettings(test.app, owner.project, { providerApiKey: `re_own_${owner.project._id.toHexString()}` });
});

type Method = 'get' | 'post' | 'patch' | 'delete';
const call = (method: Method, path: string, body?: object) =>
  request(test.server)[method](`/api/mail${path}`).set('x-api-key', owner.secret).send(body);
const used = () => slotsUsed(test.app, owner.project);

describe('audiences, contacts and broadcasts', () => {
  const operations: [Method, string, object?][] = [
    ['get', '/audiences'],
    ['post', '/audiences', { name: 'News' }],
    ['delete', '/audiences/a1'],
    ['get', '/audiences/a1/contacts'],
    ['post', '/audiences/a1/contacts', { email: 'a@b.co' }],
    ['patch', '/audiences/a1/contacts/c1', { unsubscribed: true }],
    ['delete', '/audiences/a1/contacts/c1'],
    ['post', '/broadcasts', { audienceId: 'a1', subject: 's', html: 'h' }],
    ['post', '/broadcasts/b1/send'],
    ['get', '/broadcasts'],
    ['get', '/broadcasts/b1'],
    ['delete', '/broadcasts/b1'],
  ];

  it.each(operations)('%s %s needs the project’s own key', async (method, path, body) => {
    const without = await buildProject(test.app);
    const before = provider.calls.length;
    const reply = await request(test.server)[method](`/api/mail${path}`).set('x-api-key', without.secret).send(body);
    expect([reply.status, reply.body.code]).toEqual([403, 'BYOK_REQUIRED']);
    expect(provider.calls.length).toBe(before);
  });

  it('live at the provider, on the project’s own account', async () => {
    const audience = await call('post', '/audiences', { name: 'News' });
    expect([audience.status, audience.body]).toEqual([
      200,
      { success: true, data: expect.objectContaining({ name: 'News' }), message: 'Success' },
    ]);
    const id = audience.body.data.id as string;
    const contact = await call('post', `/audiences/${id}/contacts`, { email: 'ann@example.com', firstName: 'Ann' });
    expect(contact.body.data.id).toEqual(expect.any(String));
    expect((await call('get', '/audiences')).body.data.data).toHaveLength(1);
    expect((await call('get', `/audiences/${id}/contacts`)).status).toBe(200);
    expect(
      (await call('patch', `/audiences/${id}/contacts/${contact.body.data.id}`, { unsubscribed: true })).status,
    ).toBe(200);
    expect((await call('delete', `/audiences/${id}/contacts/${contact.body.data.id}`)).status).toBe(200);
    expect((await call('delete', `/audiences/${id}`)).body.data.deleted).toBe(true);
    const keys = new Set(provider.calls.filter((one) => one.path.includes(id)).map((one) => one.key));
    expect(keys).toEqual(new Set([`re_own_${owner.project._id.toHexString()}`]));
  });

  const refused: [Method, string, object | undefined, number, string][] = [
    ['post', '/audiences', {}, 400, 'Validation failed: name is required'],
    ['post', '/audiences/a1/contacts', { email: 'nobody' }, 400, 'Validation failed: email must be an e-mail address'],
    ['post', '/audiences/a1/contacts', {}, 400, 'Validation failed: email is required'],
    [
      'post',
      '/audiences/a1/contacts',
      { email: 'a@b.co', firstName: 'a\r\nb' },
      400,
      'Validation failed: firstName must be one line of text',
    ],
    ['patch', '/audiences/a1/contacts/c1', {}, 400, 'There is nothing to change'],
    [
      'patch',
      '/audiences/a1/contacts/c1',
      { unsubscribed: 'yes' },
      400,
      'Validation failed: unsubscribed must be a Boolean',
    ],
    ['delete', '/audiences/..%2Fdomains', undefined, 404, 'The email provider does not know this id'],
    ['get', '/broadcasts/b%3Fx=1', undefined, 404, 'The email provider does not know this id'],
    ['get', '/broadcasts/unknown', undefined, 404, 'The email provider does not know this id'],
    ['post', '/broadcasts', { subject: 's', html: 'h' }, 400, 'audienceId is required'],
    ['post', '/broadcasts', { audienceId: 'a1', html: 'h' }, 400, 'Subject is required'],
    ['post', '/broadcasts', { audienceId: 'a1', subject: 's' }, 400, 'Provide at least one of html or text content.'],
    [
      'post',
      '/broadcasts',
      { audienceId: 'a1', subject: 's', html: 'h', from: 'a\r\nBcc: b@c.de' },
      400,
      'from must be an address, or Name <address>',
    ],
    [
      'post',
      '/broadcasts',
      { audienceId: 'a1', subject: 's', html: 'h', scheduledAt: 'soon' },
      400,
      'scheduledAt must be an ISO 8601 date-time',
    ],
    [
      'post',
      '/broadcasts',
      { audienceId: 'a1', subject: 's', html: 'h', scheduledAt: '2030-02-30T00:00:00Z' },
      400,
      'scheduledAt must be an ISO 8601 date-time',
    ],
  ];
  it.each(refused)('%s %s %j is answered %i', async (method, path, body, status, message) => {
    const reply = await call(method, path, body);
    expect([reply.status, reply.body.message]).toEqual([status, message]);
    expect(await used()).toBe(0);
  });

  it('says when the provider refuses the key', async () => {
    await setMailSettings(test.app, owner.project, { providerApiKey: 're_refused' });
    const reply = await call('get', '/audiences');
    expect([reply.status, reply.body.code]).toEqual([403, 'MAIL_KEY_REFUSED']);
    expect(JSON.stringify(reply.body)).not.toContain('re_refused');
  });

  it('sends a broadcast from the request’s sender, else the project’s, else the server’s', async () => {
    const create = async (from?: string) => {
      await call('post', '/broadcasts', { audienceId: 'a1', subject: 's', html: 'h', ...(from && { from }) });
      return provider.calls.at(-1)!.body.from;
    };
    expect(await create()).toBe('server@bsvc.test');
    await setMailSettings(test.app, owner.project, { providerFromEmail: 'Shop <shop@example.com>' });
    expect(await create()).toBe('Shop <shop@example.com>');
    expect(await create('me@example.com')).toBe('me@example.com');
  });

  it('takes a slot when a broadcast is sent or scheduled, none for a draft, and gives it back when refused', async () => {
    const draft = await call('post', '/broadcasts', { segmentId: 'a1', subject: 's', text: 't' });
    expect(await used()).toBe(0);
    expect((await call('post', `/broadcasts/${draft.body.data.id}/send`)).status).toBe(200);
    expect(await used()).toBe(1);
    await call('post', '/broadcasts', {
      segmentId: 'a1',
      subject: 's',
      text: 't',
      scheduledAt: '2030-01-01T00:00:00Z',
    });
    expect(await used()).toBe(2);
    expect((await call('post', '/broadcasts/unknown/send')).status).toBe(404);
    expect(await used()).toBe(2);
    await updateProject(test.app, owner.project.name, { limits: { mail: 2 } });
    const over = await call('post', `/broadcasts/${draft.body.data.id}/send`);
    expect([over.status, over.body.code]).toEqual([429, 'MAIL_QUOTA_EXCEEDED']);
  });
});

describe('the project’s own mail key', () => {
  it.each(['sk_123', 're_', 're_a-b', ' re_a', 're_a\n'])('is refused in the form %j', async (providerApiKey) => {
    await expect(setMailSettings(test.app, owner.project, { providerApiKey })).rejects.toMatchObject({
      code: 'INVALID_MAIL_KEY',
    });
  });

  it('is stored encrypted, and does not open in another project', async () => {
    const key = 're_secret_of_this_project';
    const own = await setMailSettings(test.app, owner.project, { providerApiKey: key });
    expect(JSON.stringify(own)).not.toContain(key);
    const other = await buildProject(test.app);
    await test.app.db.collection('projects').updateOne({ _id: other.project._id }, { $set: { mail: own.mail } });
    const reply = await request(test.server).get('/api/mail/audiences').set('x-api-key', other.secret);
    expect([reply.status, reply.body.code]).toEqual([500, 'INTERNAL']);
    expect(test.logLines.join('')).not.toContain(key);
  });
});
