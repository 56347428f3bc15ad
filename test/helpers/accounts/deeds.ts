import { totpCode } from '../../../src/features/users/factors/totp.js';
import type { CodePurpose } from '../../../src/features/users/codes/one-time-code.js';
import { HOME } from './account-world.js';
import { isDone, type KeptSession, type Person } from './person.js';
import type { Reply } from './servers.js';

const STEP_MS = 30_000;

type Act = (person: Person, addresses: readonly string[]) => Promise<unknown>;
type Within = (person: Person, session: KeptSession, addresses: readonly string[]) => Promise<unknown>;

/** What needs a session; without one nothing happens. */
const within =
  (act: Within): Act =>
  async (person, addresses) => {
    const session = person.session();
    if (session) await act(person, session, addresses);
  };

/** A proof for the body: of whatever level, or none. */
async function proof(person: Person, session: KeptSession): Promise<{ body: object; isStrong: boolean }> {
  const app = person.apps.findLast(({ user }) => user === session.user) ?? null;
  const drawn = person.random.below(app ? 8 : 4);
  if (drawn === 0) return { body: {}, isStrong: false };
  if (drawn === 1) return { body: { currentPassword: person.password() }, isStrong: false };
  if (drawn === 2) {
    await person.send('/step-up/code', undefined, { token: session.access });
    await person.world.deliver();
    return { body: { otp: person.code('login')?.otp ?? '000000' }, isStrong: false };
  }
  const { code, secret } = await person.secondFactor(app);
  if (app && secret !== undefined) app.recovery = app.recovery.filter((each) => each !== secret);
  return { body: code ?? {}, isStrong: code !== undefined };
}

/** Has a code mailed to an own mailbox, most of the time, and takes one that is there. */
async function newCode(person: Person, path: string, purpose: CodePurpose) {
  if (person.random.chance(0.8)) {
    person.note('askCode', await person.send(path, { email: person.random.pick(person.mailboxes) }));
    await person.world.deliver();
  }
  return person.code(purpose);
}

async function finishLink(person: Person, session: KeptSession, begun: Reply | null, isStrong: boolean): Promise<void> {
  const rtCode = isDone(begun) ? await person.linkCode(begun!.body.data!.url as string) : null;
  if (rtCode === null) return;
  const at = person.random.chance(0.3) ? (person.session() ?? session) : session;
  const reply = await person.once('link', (n) => person.send('/social/link', { rtCode }, { token: at.access }, n));
  person.note('link', reply, at, session.isStrong || isStrong);
}

export const DEEDS = {
  signup: async (person, addresses) => {
    const email = person.random.chance(0.3) ? person.random.pick(person.mailboxes) : person.random.pick(addresses);
    const password = person.password();
    const reply = await person.send('/signup', { email, password });
    if (isDone(reply) || reply === null) person.claimed.push({ email, password });
    await person.enter('signup', reply);
  },
  login: async (person, addresses) => {
    const claimed = person.claimed.length > 0 && person.random.chance(0.5) ? person.random.pick(person.claimed) : null;
    const email = person.random.chance(0.7) ? person.random.pick(person.mailboxes) : person.random.pick(addresses);
    await person.enter('login', await person.send('/login', claimed ?? { email, password: person.password() }));
  },
  askCode: async (person, addresses) => {
    const path = person.random.pick([
      '/login/code',
      '/login/code',
      '/request-password-reset',
      '/resend-verification-otp',
    ]);
    const email = person.random.chance(0.8) ? person.random.pick(person.mailboxes) : person.random.pick(addresses);
    person.note('askCode', await person.send(path, { email }));
  },
  loginByCode: async (person) => {
    const code = await newCode(person, '/login/code', 'login');
    if (!code) return;
    const send = (at?: number) => person.send('/login/code/verify', code, {}, at);
    await person.enter('login/code/verify', await person.once('login/code/verify', send));
  },
  verify: async (person) => {
    const code = person.code(person.random.pick(['verification', 'email-change']));
    if (!code) return;
    const session = person.random.chance(0.6) ? person.session() : null;
    const token = session?.access;
    const reply = await person.once('verify-email', (at) => person.send('/verify-email', code, { token }, at));
    person.note('verify', reply, session);
  },
  reset: async (person) => {
    const code = await newCode(person, '/request-password-reset', 'password-reset');
    if (!code) return;
    const body = { ...code, newPassword: person.newPassword() };
    person.note('reset', await person.once('reset', (at) => person.send('/reset-password', body, {}, at)));
  },
  social: async (person) => {
    const body = await person.socialToken();
    await person.enter(
      'social',
      await person.once('id token', (at) => person.send('/social/acme/id-token', body, {}, at)),
    );
  },
  link: within(async (person, session) => {
    const { body, isStrong } = await proof(person, session);
    const more = { token: session.access };
    const begun = await person.send('/social/acme/link', { ...body, redirect: HOME }, more);
    person.note('begin link', begun, session, isStrong);
    await finishLink(person, session, begun, isStrong);
  }),
  unlink: within(async (person, session) => {
    const { body, isStrong } = await proof(person, session);
    const reply = await person.send('/identities/acme', body, { method: 'DELETE', token: session.access });
    person.note('unlink', reply, session, isStrong);
  }),
  addPasskey: within(async (person, session) => {
    const { body, isStrong } = await proof(person, session);
    const begun = await person.send('/passkeys/options', body, { token: session.access });
    if (!isDone(begun)) return void person.note('begin passkey', begun, session, isStrong);
    const { device, stored } = person.newDevice();
    const response = device.create(begun!.body as unknown as { challenge: string });
    const reply = await person.once('registration', (at) =>
      person.send('/passkeys', { response }, { token: session.access }, at),
    );
    // Where the process was killed it may be there.
    if (isDone(reply) || reply === null) person.passkeys.push({ user: session.user, device, stored });
    person.note('passkey', reply, session, isStrong);
  }),
  removePasskey: within(async (person, session) => {
    const passkey = person.passkeys.findLast(({ user }) => user === session.user);
    if (!passkey) return;
    const { body, isStrong } = await proof(person, session);
    const path = `/passkeys/${passkey.stored}`;
    const reply = await person.send(path, body, { method: 'DELETE', token: session.access });
    person.note('remove passkey', reply, session, isStrong);
  }),
  loginByPasskey: async (person) => {
    if (person.passkeys.length === 0) return;
    const { device, stored } = person.random.pick(person.passkeys);
    const response = await person.assertion(device);
    if (!response) return;
    const reply = await person.once('assertion', (at) => person.send('/login/passkey', { response }, {}, at));
    await person.enter('login/passkey', reply, { ends: null, passkey: stored });
  },
  enrol: within(async (person, session) => {
    const { body, isStrong } = await proof(person, session);
    const begun = await person.send('/mfa/totp', body, { token: session.access });
    if (!person.note('begin totp', begun, session, isStrong)) return;
    const { secret } = begun!.body.data as { secret: string };
    // A code is good once: the next one is for signing in.
    const code = totpCode(secret, Date.now() - STEP_MS);
    const reply = await person.once('confirm', (at) =>
      person.send('/mfa/totp/confirm', { code }, { token: session.access }, at),
    );
    person.note('totp', reply, session, isStrong);
    const recovery = isDone(reply) ? (reply!.body.data!.recoveryCodes as string[]) : [];
    if (isDone(reply) || reply === null) person.apps.push({ user: session.user, secret, recovery });
  }),
  removeTotp: within(async (person, session) => {
    if (!person.apps.some(({ user }) => user === session.user)) return;
    const { body, isStrong } = await proof(person, session);
    const reply = await person.send('/mfa/totp', body, { method: 'DELETE', token: session.access });
    person.note('remove totp', reply, session, isStrong);
  }),
  renewCodes: within(async (person, session) => {
    if (!person.apps.some(({ user }) => user === session.user)) return;
    const { body, isStrong } = await proof(person, session);
    const reply = await person.send('/mfa/recovery-codes', body, { token: session.access });
    if (!person.note('recovery codes', reply, session, isStrong)) return;
    const app = person.apps.findLast(({ user }) => user === session.user);
    if (app) app.recovery = reply!.body.data!.recoveryCodes as string[];
  }),
  stepUp: within(async (person, session) => {
    const { body, isStrong } = await proof(person, session);
    const reply = await person.send('/step-up', body, { token: session.access });
    if (!person.note('step-up', reply, session, isStrong)) return;
    session.access = reply!.body.accessToken!;
    session.isStrong ||= isStrong;
  }),
  askStepUp: within(async (person, session) => {
    person.note('step-up/code', await person.send('/step-up/code', undefined, { token: session.access }), session);
  }),
  changeEmail: within(async (person, session, addresses) => {
    const email = person.random.chance(0.6) ? person.random.pick(person.mailboxes) : person.random.pick(addresses);
    const password = person.password();
    const body = { email, ...(person.random.chance(0.5) ? { currentPassword: password } : {}) };
    const more = person.random.chance(0.3) ? { password } : {};
    const reply = await person.send(
      '/update-profile',
      { ...body, ...more },
      { method: 'PATCH', token: session.access },
    );
    person.note('change email', reply, session);
  }),
  changePassword: within(async (person, session) => {
    const { body, isStrong } = await proof(person, session);
    const passwords = { currentPassword: person.password(), newPassword: person.newPassword() };
    const reply = await person.send('/change-password', { ...body, ...passwords }, { token: session.access });
    person.note('change password', reply, session, isStrong);
  }),
  endSessions: within(async (person, session) => {
    const { body, isStrong } = await proof(person, session);
    const path = `/sessions/${person.random.pick(['others', 'all'])}`;
    const reply = await person.send(path, body, { method: 'DELETE', token: session.access });
    person.note('end sessions', reply, session, isStrong);
  }),
  refresh: async (person) => {
    const session = person.sessions.length > 0 ? person.random.pick(person.sessions) : null;
    if (!session) return;
    const { servers, project } = person.world;
    const { refresh } = session;
    const sent = { path: '/refresh-token', key: project.publishable, headers: { 'x-refresh-token': refresh } };
    const reply = await servers.send(sent);
    if (!person.note('refresh', reply, session)) return;
    person.records.opened.push({ person: person.name, user: session.user, by: 'refresh', ends: session.ends });
    session.access = reply!.body.accessToken!;
    session.refresh = reply!.headers.get('x-refresh-token')!;
  },
  guest: async (person) => {
    await person.enter('guest', await person.send('/signup/anonymous', {}));
  },
  writeNote: within(async (person, session) => {
    const more = { token: session.access };
    const reply = await person.send('/api/data/notes', { text: session.user }, more);
    person.note('write note', reply, session);
    const list = await person.send('/api/data/notes?limit=100', undefined, { ...more, method: 'GET' });
    if (!isDone(list)) return;
    for (const { text } of (list!.body.data as unknown as { items: { text: string }[] }).items) {
      if (text !== session.user) person.records.twice.push(`${session.user} reads a document of ${text}`);
    }
  }),
  acceptInvite: within(async (person, session) => {
    const { invites } = person.world;
    if (invites.length === 0) return;
    const { token } = person.random.pick(invites.slice(-4));
    const reply = await person.send('/invites/accept', { token }, { token: session.access });
    person.note('accept invite', reply, session);
  }),
  deleteMe: within(async (person, session) => {
    const { body, isStrong } = await proof(person, session);
    const reply = await person.send('/me', body, { method: 'DELETE', token: session.access });
    person.note('delete', reply, session, isStrong);
  }),
} satisfies Record<string, Act>;
