import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { setMailSettings } from '../../world/projects.js';
import {
  ADMIN_TOKEN,
  asSecret,
  buildEstate,
  callerWith,
  EVENT_SECRET,
  fire,
  openStage,
  outcomeOf,
  type Answer,
  type Caller,
} from './stage.js';
import { use } from '../../helpers/use.js';

const stage = use(await openStage());
const estate = await buildEstate(stage);
const call = asSecret(stage, estate);
/** As in production: nothing private may be reached. */
const strict = use(await openStage({ BSVC_WEBHOOK_ALLOW_PRIVATE: 'false' }));
const asAdmin = callerWith(strict, { authorization: `Bearer ${ADMIN_TOKEN}` });
const created = await asAdmin('POST', '/api/projects', { name: 'strict', plan: 'pro' });
const strictProject = (JSON.parse(created.text) as { data: { project: { id: string } } }).data.project.id;

/** Targets that lead, or could lead, somewhere inside; and what is no target at all. */
const TARGETS = [
  'https://127.0.0.1/',
  'https://127.1/',
  'https://2130706433/',
  'https://0x7f000001/',
  'https://0x7f.0x0.0x0.0x1/',
  'https://017700000001/',
  'https://0/',
  'https://localhost/',
  'https://LOCALHOST./',
  'https://a.localhost/',
  'https://[::1]/',
  'https://[::]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:a9fe:a9fe]/',
  'https://[0:0:0:0:0:ffff:7f00:1]/',
  'https://[64:ff9b::a9fe:a9fe]/',
  'https://[fe80::1]/',
  'https://[fd00:ec2::254]/',
  'https://169.254.169.254/latest/meta-data/',
  'https://2852039166/',
  'https://10.0.0.1/',
  'https://172.16.0.1/',
  'https://192.168.0.1/',
  'https://100.64.0.1/',
  'https://198.18.0.1/',
  'https://224.0.0.1/',
  'https://255.255.255.255/',
  'https://１２７.０.０.１/',
  'https://①②⑦.⓪.⓪.①/',
  'https://127。0。0。1/',
  'https://127.0.0.1:6379/',
  'https://127.0.0.1%2f@example.test/',
  'https://127.0.0.1\\@example.test/',
  'https://127.0.\t0.1/',
  'https://127.0.\n0.1/',
  'https://example.test@127.0.0.1/',
  'https://user:password@8.8.8.8/',
  'http://8.8.8.8/',
  'ftp://8.8.8.8/',
  'file:///etc/passwd',
  'gopher://127.0.0.1:6379/_FLUSHALL',
  'javascript:alert(1)',
  'data:text/plain,x',
  'unix:/var/run/docker.sock',
  '//127.0.0.1/',
  '/relative',
  'https://',
  'https://[::1',
  'https://8.8.8.8:99999/',
  'https://a b/',
  `https://8.8.8.8/${'a'.repeat(3000)}`,
  '',
];

describe('a target that a project names', () => {
  it.each(TARGETS)('%s is refused for webhooks and for buckets', async (url) => {
    const inside = `/api/projects/${strictProject}`;
    const added = await asAdmin('POST', `${inside}/webhooks`, { url, events: ['*'] });
    expect(outcomeOf(added)).toMatch(/^400 (INVALID_URL|PRIVATE_ADDRESS)$/);
    const bucket = { bucket: 'files', accessKeyId: 'i', secretAccessKey: 's', endpoint: url, verify: false };
    // Without an endpoint it would be AWS.
    if (url !== '') expect(outcomeOf(await asAdmin('PUT', `${inside}/bucket`, bucket))).toMatch(/^400 /);
    expect(JSON.parse((await asAdmin('GET', `${inside}/webhooks`)).text)).toMatchObject({ data: { total: 0 } });
  });

  it('cannot become one by an edit', async () => {
    const inside = `/api/projects/${strictProject}/webhooks`;
    const added = await asAdmin('POST', inside, { url: 'https://8.8.8.8/hook', events: ['*'] });
    const { id } = (JSON.parse(added.text) as { data: { id: string } }).data;
    for (const url of TARGETS) expect((await asAdmin('PATCH', `${inside}/${id}`, { url })).status).toBe(400);
    expect(JSON.parse((await asAdmin('GET', `${inside}/${id}`)).text)).toMatchObject({
      data: { url: 'https://8.8.8.8/hook' },
    });
    await asAdmin('DELETE', `${inside}/${id}`);
  });
});

/** Line ends and what some reader takes for one. */
const BREAKS = ['\r\n', '\n', '\r', '\0', '\u2028', '\u2029'];
const EVIL = 'Bcc: evil@example.test';

/** Every text that ends up in a header of a mail. */
const HEADERS: readonly [what: string, send: (evil: string) => Promise<Answer>][] = [
  ['the subject', (evil) => call('POST', '/api/mail/send', { to: 'a@b.co', subject: `Hi${evil}`, text: 't' })],
  [
    'a variable of the subject',
    (evil) =>
      call('POST', '/api/mail/send', { to: 'a@b.co', subject: 'Hi {{name}}', text: 't', variables: { name: evil } }),
  ],
  ['a recipient', (evil) => call('POST', '/api/mail/send', { to: `a@b.co${evil}`, subject: 's', text: 't' })],
  [
    'one of several recipients',
    (evil) => call('POST', '/api/mail/send', { to: ['a@b.co', `a@b.co${evil}`], subject: 's', text: 't' }),
  ],
  [
    'an address for answers',
    (evil) => call('POST', '/api/mail/send', { to: 'a@b.co', replyTo: `a@b.co${evil}`, subject: 's', text: 't' }),
  ],
  [
    'the subject of a batch',
    (evil) => call('POST', '/api/mail/send-batch', [{ to: 'a@b.co', subject: `Hi${evil}`, text: 't' }]),
  ],
  [
    'a recipient of a batch',
    (evil) => call('POST', '/api/mail/send-batch', [{ to: `a@b.co${evil}`, subject: 's', text: 't' }]),
  ],
  [
    'the subject of a broadcast',
    (evil) =>
      call('POST', '/api/mail/broadcasts', { audienceId: estate.names.audience, subject: `Hi${evil}`, text: 't' }),
  ],
  [
    'the sender of a broadcast',
    (evil) =>
      call('POST', '/api/mail/broadcasts', {
        audienceId: estate.names.audience,
        subject: 's',
        text: 't',
        from: `Shop${evil} <a@b.co>`,
      }),
  ],
  [
    'the address of a contact',
    (evil) => call('POST', `/api/mail/audiences/${estate.names.audience}/contacts`, { email: `a@b.co${evil}` }),
  ],
  [
    'the name of a contact',
    (evil) =>
      call('POST', `/api/mail/audiences/${estate.names.audience}/contacts`, {
        email: 'a@b.co',
        firstName: `Ann${evil}`,
      }),
  ],
  ['the name of an audience', (evil) => call('POST', '/api/mail/audiences', { name: `All${evil}` })],
  [
    'the default sender',
    (evil) =>
      asOperator('PATCH', `/api/projects/${estate.names.projectId}`, { providerFromEmail: `Shop${evil} <a@b.co>` }),
  ],
  [
    'the provider’s key',
    (evil) => asOperator('PATCH', `/api/projects/${estate.names.projectId}`, { providerApiKey: `re_x${evil}` }),
  ],
  [
    'an end user’s address',
    (evil) => call('POST', '/api/userAuth/signup', { email: `a@b.co${evil}`, password: 'long enough' }),
  ],
  ['an address for a code', (evil) => call('POST', '/api/userAuth/request-password-reset', { email: `a@b.co${evil}` })],
];
const asOperator: Caller = (...args) => callerWith(stage, { authorization: `Bearer ${estate.operator}` })(...args);

describe('a line break', () => {
  it.each(HEADERS)('in %s reaches no mail', async (what, send) => {
    for (const end of BREAKS) {
      const before = stage.provider.calls.length;
      const answer = await send(`${end}${EVIL}`);
      // About codes nobody is told whether the address exists, or could.
      if (!what.includes('code'))
        expect({ end, outcome: outcomeOf(answer) }).toMatchObject({
          outcome: expect.stringMatching(/^400 /) as string,
        });
      expect(stage.provider.calls.length).toBe(before);
    }
  });

  it.each([
    ['a hundred recipients', { to: Array.from({ length: 100 }, (_, at) => `a${at}@b.co`), subject: 's', text: 't' }],
    ['a list inside one recipient', { to: 'a@b.co, b@b.co', subject: 's', text: 't' }],
    ['a recipient with a name', { to: 'Ann <a@b.co>', subject: 's', text: 't' }],
    ['a recipient with a route', { to: '@evil.test:a@b.co', subject: 's', text: 't' }],
    ['a quoted recipient', { to: '"a@evil.test "@b.co', subject: 's', text: 't' }],
    ['a recipient without a host', { to: 'root', subject: 's', text: 't' }],
    ['a subject of 999 characters', { to: 'a@b.co', subject: 's'.repeat(999), text: 't' }],
    ['a template that calls', { to: 'a@b.co', subject: 's', text: '{{#constructor}}x{{/constructor}}' }],
    ['a template that changes its delimiters', { to: 'a@b.co', subject: 's', text: '{{=<% %>=}}<% x %>' }],
    ['a template that includes', { to: 'a@b.co', subject: 's', text: '{{> /etc/passwd}}' }],
    ['a template’s name with a path', { to: 'a@b.co', templateName: '../../../etc/passwd' }],
    ['a template’s name with a prototype', { to: 'a@b.co', templateName: '__proto__' }],
  ])('is not needed: %s are refused too', async (_what, body) => {
    const before = stage.provider.calls.length;
    expect(outcomeOf(await call('POST', '/api/mail/send', body))).toMatch(
      /^(400 (INVALID_(MAIL|TEMPLATE)|VALIDATION_FAILED)|404 TEMPLATE_NOT_FOUND)$/,
    );
    expect(stage.provider.calls.length).toBe(before);
  });
});

describe('an event that claims to come from the mail provider', () => {
  const key = Buffer.from(EVENT_SECRET.slice('whsec_'.length), 'base64');
  const now = (): string => String(Math.floor(Date.now() / 1000));
  const signed = (id: string, at: string, body: string, secret: Buffer | string = key): string =>
    createHmac('sha256', secret).update(`${id}.${at}.${body}`).digest('base64');
  let made = 0;

  interface Event {
    id: string;
    at: string;
    signature: string;
    body: string;
    query?: string;
    headers?: Record<string, string | string[]>;
  }
  const event = (): Event => {
    const [id, at] = [`msg_attack_${++made}`, now()];
    const body = JSON.stringify({ type: 'email.bounced', data: { email_id: estate.names.mail } });
    return { id, at, body, signature: `v1,${signed(id, at, body)}` };
  };
  const deliver = ({ id, at, signature, body, query = '', headers = {} }: Event): Promise<Answer> =>
    fire(stage, {
      method: 'POST',
      path: `/api/mail/webhook${query}`,
      headers: { 'svix-id': id, 'svix-timestamp': at, 'svix-signature': signature, ...headers },
      body,
    });
  const statusOfMail = async (): Promise<string> =>
    (await stage.app.db
      .collection<{ providerEmailId: string; status: string }>('mail_logs')
      .findOne({ providerEmailId: estate.names.mail! }))!.status;

  const forgeries: readonly [what: string, forge: (good: Event) => Event | Promise<Event>][] = [
    ['without a signature', (good) => ({ ...good, signature: '' })],
    ['with an empty one', (good) => ({ ...good, signature: 'v1,' })],
    ['of a version nobody knows', (good) => ({ ...good, signature: good.signature.replace('v1', 'v2') })],
    ['with an asymmetric version', (good) => ({ ...good, signature: good.signature.replace('v1', 'v1a') })],
    ['without a version', (good) => ({ ...good, signature: good.signature.slice(3) })],
    [
      'with a hundred guesses',
      (good) => ({
        ...good,
        signature: Array.from(
          { length: 100 },
          (_, at) => `v1,${signed(good.id, good.at, good.body, `guess ${at}`)}`,
        ).join(' '),
      }),
    ],
    [
      'signed with an empty secret',
      (good) => ({ ...good, signature: `v1,${signed(good.id, good.at, good.body, '')}` }),
    ],
    [
      'signed with the secret as text',
      (good) => ({ ...good, signature: `v1,${signed(good.id, good.at, good.body, EVENT_SECRET)}` }),
    ],
    [
      'signed as hexadecimal',
      (good) => ({ ...good, signature: `v1,${Buffer.from(good.signature.slice(3), 'base64').toString('hex')}` }),
    ],
    ['with another id', (good) => ({ ...good, id: 'msg_other' })],
    ['with another moment', (good) => ({ ...good, at: String(Number(good.at) + 1) })],
    ['with a body to which something was added', (good) => ({ ...good, body: `${good.body} ` })],
    [
      'whose parts were moved over the dots',
      (good) => ({ ...good, id: `${good.id}.${good.at}`, at: good.body, body: '' }),
    ],
    ['of an hour ago', (good) => resigned({ ...good, at: String(Number(good.at) - 3600) })],
    ['of the future', (good) => resigned({ ...good, at: String(Number(good.at) + 3600) })],
    ['of no moment', (good) => resigned({ ...good, at: 'NaN' })],
    ['of infinity', (good) => resigned({ ...good, at: 'Infinity' })],
    ['of minus infinity', (good) => resigned({ ...good, at: '-1e400' })],
    ['of a moment in hexadecimal', (good) => resigned({ ...good, at: `0x${Number(good.at).toString(16)}` })],
    ['without a moment', (good) => resigned({ ...good, at: '' })],
    ['without an id', (good) => resigned({ ...good, id: '' })],
    [
      'that names a project whose own secret it does not know',
      async (good) => {
        await setMailSettings(stage.app, estate.project, {
          webhookSecret: `whsec_${Buffer.from('of the project').toString('base64')}`,
        });
        return { ...good, query: `?project=${estate.names.projectId}` };
      },
    ],
    [
      'with two signatures in two headers, one of them good for another body',
      (good) => ({ ...good, body: `${good.body} `, headers: { 'svix-signature': [good.signature, 'v1,AAAA'] } }),
    ],
    [
      'with the good signature under a second name',
      (good) => ({ ...good, body: `${good.body} `, headers: { 'webhook-signature': good.signature } }),
    ],
  ];
  const resigned = (changed: Event): Event => ({
    ...changed,
    signature: `v1,${signed(changed.id, changed.at, changed.body)}`,
  });

  it.each(forgeries)('%s is 400 and changes nothing', async (_what, forge) => {
    const before = await statusOfMail();
    expect(outcomeOf(await deliver(await forge(event())))).toBe('400 INVALID_SIGNATURE');
    expect(await statusOfMail()).toBe(before);
  });

  const signedNonsense: readonly string[] = [
    'null',
    '7',
    '[]',
    '"email.bounced"',
    '{}',
    '{"type":"__proto__","data":{}}',
    '{"type":"constructor","data":{"email_id":"x"}}',
    '{"type":{"$ne":null},"data":{"email_id":{"$ne":null}}}',
    '{"type":"email.bounced","data":null}',
    '{"type":"email.bounced","data":{"email_id":{"$ne":null}}}',
    '{"type":"email.bounced","data":{"email_id":["x"]}}',
    '{"type":"email.bounced","data":{"email_id":"x","bounce":{"message":{"$set":1}}}}',
    `{"type":"email.bounced","data":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
    'no json',
    '',
  ];
  it.each(signedNonsense)('that is well signed but says %s is 200 or 400 and changes nothing', async (body) => {
    const before = await statusOfMail();
    const answer = await deliver(resigned({ ...event(), body }));
    expect([200, 400]).toContain(answer.status);
    expect(await statusOfMail()).toBe(before);
  });

  it('of a megabyte is 413', async () => {
    expect(outcomeOf(await deliver(resigned({ ...event(), body: ' '.repeat(1024 * 1024) })))).toBe(
      '413 BODY_TOO_LARGE',
    );
  });

  it('is believed when it is good, so the refusals above mean something', async () => {
    expect((await deliver(event())).status).toBe(200);
    expect(await statusOfMail()).toBe('bounced');
  });
});
