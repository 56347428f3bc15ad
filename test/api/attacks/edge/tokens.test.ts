import { createHmac, createSecretKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { requireProject, findTokenKey } from '../../../world/projects.js';
import { buildCollection, buildProject } from '../../../helpers/build-project.js';
import { createFakeClock } from '../../../helpers/fake-clock.js';
import { use } from '../../../helpers/use.js';
import { bearer, openUserClient, PASSWORD } from '../../../helpers/user-client.js';
import { ADMIN_TOKEN, fire, forgeToken, openStage, outcomeOf, type Answer } from '../stage.js';

const clock = createFakeClock();

const stage = use(await openStage({}, clock));
const owner = await buildProject(stage.app);
const other = await buildProject(stage.app);
const client = openUserClient(stage, owner.publishable);
const rls = { mode: 'private', ownerField: 'userId' } as const;
await buildCollection(stage.app, owner.project, { name: 'private', rls });
const text = (name: string) => ({ name, type: 'String' as const });
const members = { name: 'members', fields: ['board', 'user'].map(text), rules: 'server-only' as const };
await buildCollection(stage.app, owner.project, members);
const own = 'doc.userId = user.id';
await buildCollection(stage.app, owner.project, {
  name: 'ruled',
  fields: [...['text', 'board'].map(text), { ...text('userId'), stamp: 'user.id', fixed: true }],
  rules: { read: `${own} or doc.board in members[user = user.id].board`, create: own },
});

interface Session {
  user: { _id: string; email: string };
  accessToken: string;
  refreshToken: string;
}

async function signUp(): Promise<Session> {
  const { body, headers } = await client.signUp();
  return { ...(body as Session), refreshToken: headers['x-refresh-token'] as string };
}

const encode = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
const decode = (part: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;

interface Parts {
  head: Record<string, unknown>;
  claims: Record<string, unknown>;
}

const partsOf = (token: string): Parts => {
  const [head, claims] = token.split('.') as [string, string];
  return { head: decode(head), claims: decode(claims) };
};

/** A token signed with the project's very own secret: what is wrong with it is only what the attack made wrong. */
function signAsService({ head, claims }: { head: unknown; claims: unknown }, project = owner, hash = 'sha256'): string {
  const kid = partsOf(forgeToken(stage, project, '0'.repeat(24))).head.kid as string;
  const key = findTokenKey(stage.app, project.project, kid)!;
  const input = `${encode(head)}.${encode(claims)}`;
  return `${input}.${createHmac(hash, key.signing).update(input).digest('base64url')}`;
}

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const publicPem = rsa.publicKey.export({ type: 'spki', format: 'pem' });

function signByRsa({ head, claims }: Parts): string {
  const input = `${encode(head)}.${encode(claims)}`;
  return `${input}.${sign('sha256', Buffer.from(input), rsa.privateKey).toString('base64url')}`;
}

function signByText({ head, claims }: Parts, secret: string): string {
  const input = `${encode(head)}.${encode(claims)}`;
  return `${input}.${createHmac('sha256', createSecretKey(Buffer.from(secret)))
    .update(input)
    .digest('base64url')}`;
}

const now = (): number => Math.floor(clock.now() / 1000);
const jwk = rsa.publicKey.export({ format: 'jwk' });

/** Changes of a good token, beyond those of the tests of sessions. */
const FORGERIES: readonly [what: string, forge: (good: string, parts: Parts) => string][] = [
  ['with alg none in capitals', (good, { head }) => `${encode({ ...head, alg: 'NONE' })}.${good.split('.')[1]}.`],
  ['with alg none and the old signature', (good, { head }) => good.replace(/^[^.]+/, encode({ ...head, alg: 'none' }))],
  ['with an empty alg', (_good, { head, claims }) => signAsService({ head: { ...head, alg: '' }, claims })],
  ['with a list of algs', (_good, { head, claims }) => signAsService({ head: { ...head, alg: ['HS256'] }, claims })],
  ['without alg', (_good, { head, claims }) => signAsService({ head: { ...head, alg: undefined }, claims })],
  [
    'that says RS256 and is signed by HMAC',
    (_good, { head, claims }) => signAsService({ head: { ...head, alg: 'RS256' }, claims }),
  ],
  [
    'signed by a key pair of the attacker',
    (_good, { head, claims }) => signByRsa({ head: { ...head, alg: 'RS256' }, claims }),
  ],
  [
    'that brings its own key (jwk)',
    (_good, { head, claims }) => signByRsa({ head: { ...head, alg: 'RS256', jwk }, claims }),
  ],
  [
    'that names a place for keys (jku)',
    (_good, { head, claims }) => signByRsa({ head: { ...head, alg: 'RS256', jku: stage.provider.url }, claims }),
  ],
  [
    'that brings certificates (x5c)',
    (_good, { head, claims }) => signByRsa({ head: { ...head, alg: 'RS256', x5c: [publicPem] }, claims }),
  ],
  ['signed with a public key as the secret', (_good, parts) => signByText(parts, String(publicPem))],
  ['signed with the publishable key', (_good, parts) => signByText(parts, owner.publishable)],
  ['signed with the secret key', (_good, parts) => signByText(parts, owner.secret)],
  ['signed with the project’s id', (_good, parts) => signByText(parts, owner.project._id.toHexString())],
  ['signed with its key id', (_good, parts) => signByText(parts, String(parts.head.kid))],
  ['signed with nothing but zeros', (_good, parts) => signByText(parts, '\0'.repeat(32))],
  [
    'signed with the right secret by HS384',
    (_good, { head, claims }) => signAsService({ head: { ...head, alg: 'HS384' }, claims }, owner, 'sha384'),
  ],
  ['signed with another project’s secret', (_good, parts) => signAsService(parts, other)],
  [
    'signed with another project’s secret under its key id',
    (_good, { claims }) =>
      signAsService({ head: partsOf(forgeToken(stage, other, '0'.repeat(24))).head, claims }, other),
  ],
  [
    'of another project, made out to this one',
    (_good, { claims }) => {
      const theirs = partsOf(forgeToken(stage, other, String(claims.sub)));
      return signAsService({ head: theirs.head, claims: { ...theirs.claims, projectId: claims.projectId } }, other);
    },
  ],
  ...['../../../../dev/null', '__proto__', 'constructor', '', 'a\0b', "' or 1=1--", '$ne', 'x'.repeat(2000)].map(
    (kid): [string, (good: string, parts: Parts) => string] => [
      `with the key id ${JSON.stringify(kid.slice(0, 30))}`,
      (_good, { head, claims }) => signAsService({ head: { ...head, kid }, claims }),
    ],
  ),
  ...[{ $ne: null }, ['x'], 7, true, null].map((kid): [string, (good: string, parts: Parts) => string] => [
    `with the key id ${JSON.stringify(kid)}`,
    (_good, { head, claims }) => signAsService({ head: { ...head, kid }, claims }),
  ]),
  ['without a key id', (_good, { head, claims }) => signAsService({ head: { ...head, kid: undefined }, claims })],
  [
    'that must not be used yet',
    (_good, { head, claims }) => signAsService({ head, claims: { ...claims, nbf: now() + 3600 } }),
  ],
  ['with nbf as text', (_good, { head, claims }) => signAsService({ head, claims: { ...claims, nbf: '0' } })],
  ['with exp as text', (_good, { head, claims }) => signAsService({ head, claims: { ...claims, exp: '9999999999' } })],
  [
    'with exp as an operator',
    (_good, { head, claims }) => signAsService({ head, claims: { ...claims, exp: { $gt: 0 } } }),
  ],
  [
    'with exp beyond numbers',
    (_good, { head, claims }) =>
      signAsService({ head, claims: JSON.stringify(claims).replace(/"exp":\d+/, '"exp":1e400') }),
  ],
  ['without sub', (_good, { head, claims }) => signAsService({ head, claims: { ...claims, sub: undefined } })],
  [
    'with an operator as sub and userId',
    (_good, { head, claims }) =>
      signAsService({ head, claims: { ...claims, sub: { $ne: null }, userId: { $ne: null } } }),
  ],
  [
    'with a list as userId',
    (_good, { head, claims }) => signAsService({ head, claims: { ...claims, userId: [claims.userId] } }),
  ],
  [
    'without projectId',
    (_good, { head, claims }) => signAsService({ head, claims: { ...claims, projectId: undefined } }),
  ],
  [
    'with a list of projectIds',
    (_good, { head, claims }) => signAsService({ head, claims: { ...claims, projectId: [claims.projectId] } }),
  ],
  [
    'with jti as an object',
    (_good, { head, claims }) => signAsService({ head, claims: { ...claims, jti: { $ne: null } } }),
  ],
  ['with a jti of its own', (_good, { head, claims }) => signAsService({ head, claims: { ...claims, jti: 'a.b.c' } })],
  ['whose claims are a text', (_good, { head }) => signAsService({ head, claims: '"text"' })],
  ['whose claims are null', (_good, { head }) => signAsService({ head, claims: 'null' })],
  ['whose claims are a list', (_good, { head, claims }) => signAsService({ head, claims: [claims] })],
  ['whose claims are no JSON', (_good, { head }) => signAsService({ head, claims: 'no json' })],
  [
    'whose claims are cut short',
    (_good, { head, claims }) => signAsService({ head, claims: JSON.stringify(claims).slice(0, -5) }),
  ],
  [
    'whose claims nest a thousand levels',
    (_good, { head }) => signAsService({ head, claims: `${'['.repeat(1000)}${']'.repeat(1000)}` }),
  ],
  ['whose head is null', (_good, { claims }) => signAsService({ head: 'null', claims })],
  ['whose head is a number', (_good, { claims }) => signAsService({ head: '7', claims })],
  ['whose head is no JSON', (_good, { claims }) => signAsService({ head: 'no json', claims })],
  [
    'whose head has a prototype',
    (_good, { claims }) => signAsService({ head: '{"__proto__":{"alg":"HS256","kid":"x"}}', claims }),
  ],
  [
    'with a critical extension',
    (_good, { head, claims }) => signAsService({ head: { ...head, crit: ['exp'], b64: false }, claims }),
  ],
  [
    'with a flipped bit in its signature',
    (good) => `${good.slice(0, -3)}${good.at(-3) === 'A' ? 'B' : 'A'}${good.slice(-2)}`,
  ],
  ['with a fourth part', (good) => `${good}.x`],
  ['with its parts in another order', (good) => good.split('.').reverse().join('.')],
  ['without a signature', (good) => good.slice(0, good.lastIndexOf('.'))],
  ['with a comma and another token', (good) => `${good},${good}`],
  ['with percent signs', (good) => good.replace(/\./g, '%2e')],
  ['of 4,097 characters', (good) => `${good}${'A'.repeat(4097 - good.length)}`],
  ['of 12,000 characters', () => `${'A'.repeat(6000)}.${'A'.repeat(5000)}.${'A'.repeat(998)}`],
  ['that is a refresh token', () => `00000000-0000-4000-8000-000000000000.${'a'.repeat(64)}`],
  ['that is the secret key', () => owner.secret],
  ['that is an operator’s token', () => `bsvc_op_${'a'.repeat(43)}`],
];

/** Where a user's token counts, and how the refusal reads. */
const PLACES: readonly [method: string, path: string, body?: unknown][] = [
  ['GET', '/api/userAuth/me'],
  ['GET', '/api/data/private'],
  ['POST', '/api/data/private', { text: 'x' }],
  ['GET', '/api/data/ruled'],
  ['POST', '/api/data/ruled', { text: 'x' }],
];

function ask(
  authorization: string | string[],
  [method, path, body]: (typeof PLACES)[number] = PLACES[0]!,
): Promise<Answer> {
  return fire(stage, { method, path, body, headers: { 'x-api-key': owner.publishable, authorization } });
}

describe('an access token', () => {
  let session: Session;
  beforeAll(async () => void (session = await signUp()));

  it('as the service signs it is good, so the refusals below mean something', async () => {
    const again = signAsService(partsOf(session.accessToken));
    for (const place of PLACES) expect((await ask(`Bearer ${again}`, place)).status).toBeLessThan(300);
  });

  it.each(FORGERIES)('%s is 401 TOKEN_INVALID wherever a user is needed', async (_what, forge) => {
    const forged = forge(session.accessToken, partsOf(session.accessToken));
    for (const place of PLACES) expect(outcomeOf(await ask(`Bearer ${forged}`, place))).toBe('401 TOKEN_INVALID');
  });

  it('that has run out is 401 TOKEN_EXPIRED, and one signed with another secret does not say so', async () => {
    const { head, claims } = partsOf(session.accessToken);
    const over = { head, claims: { ...claims, exp: now() - 1 } };
    expect(outcomeOf(await ask(`Bearer ${signAsService(over)}`))).toBe('401 TOKEN_EXPIRED');
    expect(outcomeOf(await ask(`Bearer ${signByText(over, 'guessed')}`))).toBe('401 TOKEN_INVALID');
  });

  it.each([
    ['another scheme', (token: string) => `Basic ${token}`],
    ['no scheme', (token: string) => token],
    ['two spaces', (token: string) => `Bearer  ${token}`],
    ['a comma', (token: string) => `Bearer ${token}, Bearer ${token}`],
    ['quotes', (token: string) => `Bearer "${token}"`],
    ['nothing behind the scheme', () => 'Bearer '],
    ['a tab', (token: string) => `Bearer\t${token}`],
    ['a space that is none of HTTP’s', (token: string) => `Bearer ${token}\u00a0`],
    ['another word', (token: string) => `Bearer ${token} more`],
  ])('behind %s is not one', async (_what, write) => {
    expect(outcomeOf(await ask(write(session.accessToken)))).toBe('401 TOKEN_INVALID');
  });

  it('may have blanks around it: they are no part of a header’s value (RFC 9110, 5.5)', async () => {
    expect((await ask(`  Bearer ${session.accessToken} \t`)).status).toBe(200);
  });

  it('counts once: of two Authorization headers the first is believed, and alone', async () => {
    const { accessToken } = await signUp();
    const answer = await ask([`Bearer ${session.accessToken}`, `Bearer ${accessToken}`]);
    expect(JSON.parse(answer.text)).toMatchObject({ _id: session.user._id });
  });

  it('of a user that never was opens no private list', async () => {
    const forged = forgeToken(stage, owner, 'f'.repeat(24));
    expect(JSON.parse((await ask(`Bearer ${forged}`, PLACES[1])).text)).toMatchObject({ data: { items: [] } });
    expect(outcomeOf(await ask(`Bearer ${forged}`))).toMatch(/^401 /);
  });
});

describe('a refresh token', () => {
  let session: Session;
  beforeEach(async () => void (session = await signUp()));

  const refresh = async (token: string, key = owner.publishable): Promise<string> => {
    const answer = await fire(stage, {
      method: 'POST',
      path: '/api/userAuth/refresh-token',
      headers: { 'x-api-key': key, 'x-refresh-token': token },
    });
    return outcomeOf(answer);
  };
  const renewed = async (token: string): Promise<string> =>
    (await client.refresh(token)).headers['x-refresh-token'] as string;

  const hostile: readonly [what: string, change: (token: string) => string][] = [
    ['with the session of somebody else', (token) => `00000000-0000-4000-8000-000000000000.${token.split('.')[1]}`],
    ['with a session in capitals', (token) => token.toUpperCase()],
    ['with a digit changed', (token) => `${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`],
    ['with the guessed half of its digits', (token) => `${token.slice(0, -32)}${randomBytes(16).toString('hex')}`],
    ['with more behind it', (token) => `${token}0`],
    ['twice, with a comma', (token) => `${token}, ${token}`],
    ['with an operator in the place of the session', (token) => `{"$ne":null}.${token.split('.')[1]}`],
    ['with a NUL written out', (token) => `${token}%00`],
    ['of 8,000 characters', () => 'a'.repeat(8000)],
    ['that is an access token', () => session.accessToken],
    ['that is the hash of one', (token) => `${token.split('.')[0]}.${'0'.repeat(64)}`],
  ];
  it.each(hostile)('%s is refused and harms nobody', async (_what, change) => {
    expect(await refresh(change(session.refreshToken))).toBe('401 REFRESH_INVALID');
    expect(await refresh(session.refreshToken)).toBe('200');
  });

  it('stolen and used after its owner went on ends the session for both, everywhere', async () => {
    let current = session.refreshToken;
    for (let turn = 0; turn < 3; turn++) current = await renewed(current);
    clock.advance(11_000);
    // The thief's copy is three turns old: no honest client has it any more.
    expect(await refresh(session.refreshToken)).toBe('401 REFRESH_REUSED');
    expect(await refresh(current)).toMatch(/^401 REFRESH_(REUSED|INVALID)$/);
    expect((await client.me(session.accessToken)).status).toBe(401);
  });

  it('used by many thieves at once never makes two families', async () => {
    const replies = await Promise.all(Array.from({ length: 20 }, () => client.refresh(session.refreshToken)));
    const successors = new Set(
      replies.filter(({ status }) => status === 200).map(({ headers }) => String(headers['x-refresh-token'])),
    );
    expect(successors.size).toBe(1);
  });

  it('reused by many at once ends one session and no other of the same user', async () => {
    const second = (await client.logIn(session.user.email)).headers['x-refresh-token'] as string;
    let current = session.refreshToken;
    for (let turn = 0; turn < 2; turn++) current = await renewed(current);
    clock.advance(11_000);
    const refusals = await Promise.all(Array.from({ length: 10 }, () => refresh(session.refreshToken)));
    expect(new Set(refusals)).toEqual(new Set(['401 REFRESH_REUSED']));
    expect(await refresh(second)).toBe('200');
  });

  it('of another project is refused by whatever key, and goes on where it belongs', async () => {
    expect(await refresh(session.refreshToken, other.publishable)).toBe('401 REFRESH_INVALID');
    expect(await refresh(session.refreshToken, other.secret)).toBe('401 REFRESH_INVALID');
    expect(await refresh(session.refreshToken)).toBe('200');
  });

  const ends: readonly [what: string, end: () => Promise<unknown>][] = [
    ['sign-out', () => client.post('/logout', undefined, { 'x-refresh-token': session.refreshToken })],
    [
      'a change of the password elsewhere',
      async () => {
        const { accessToken } = (await client.logIn(session.user.email)).body as Session;
        return client.post(
          '/change-password',
          { currentPassword: PASSWORD, newPassword: 'another one' },
          bearer(accessToken),
        );
      },
    ],
    ['its account’s end', () => operatorDeletes(session.user._id)],
  ];
  it.each(ends)('is worthless after %s, its successors too', async (_what, end) => {
    const successor = await renewed(session.refreshToken);
    await end();
    expect(await refresh(successor)).toBe('401 REFRESH_INVALID');
    expect(await refresh(session.refreshToken)).toMatch(/^401 REFRESH_(INVALID|REUSED)$/);
  });

  it('is never found in a reply’s body that did not ask for it, nor in a log', async () => {
    const reply = await client.logIn(session.user.email);
    expect(reply.text).not.toContain((reply.headers['x-refresh-token'] as string).split('.')[1]);
    expect(stage.logLines.join('')).not.toContain(session.refreshToken.split('.')[1]);
  });
});

async function operatorDeletes(user: string): Promise<void> {
  const project = await requireProject(stage.app, owner.project._id.toHexString());
  const answer = await fire(stage, {
    method: 'DELETE',
    path: `/api/projects/${project._id.toHexString()}/users/${user}`,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect(answer.status).toBe(200);
}
