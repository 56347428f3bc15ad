import { expect, it } from 'vitest';
import { totpCode } from '../world/users.js';
import { openAccountWorld, HOME } from '../helpers/accounts/account-world.js';
import { DEEDS } from '../helpers/accounts/deeds.js';
import { hasEnded, judge, type Round } from '../helpers/accounts/judge.js';
import { isDone, Person, type Records } from '../helpers/accounts/person.js';
import { openRandom } from '../helpers/random.js';
import { openSeed } from '../helpers/seed.js';
import { use } from '../helpers/use.js';

// accounts.md 7, properties 1 to 3 and 5 to 7: whatever persons do to each other's accounts, by three processes that
// are killed now and then. 4 is test/api/deep/nothing-told.test.ts, 8 test/e2e/secrets-out-of-sight.test.ts.

const NAMES = ['ada', 'bob', 'cy'];
const ROUNDS = Number(process.env.BSVC_TEST_ROUNDS ?? 160);
const KILL_EVERY = 32;
const GUESSES = 90;
const NETWORKS = 12;
const MAILBOXES = 5;
const LEVELS = 6;
const seed = openSeed('attacks on accounts');
const random = openRandom(seed);
const world = use(await openAccountWorld(random));

type What = keyof typeof DEEDS;
const OFTEN: readonly What[] = [
  ...(['loginByCode', 'loginByCode', 'loginByCode', 'verify', 'reset', 'social', 'guest', 'signup', 'signup'] as const),
  ...(['login', 'changeEmail', 'changeEmail', 'stepUp', 'enrol', 'enrol', 'addPasskey', 'addPasskey'] as const),
  ...(['addPasskey', 'link', 'link', 'removePasskey', 'loginByPasskey', 'acceptInvite', 'refresh'] as const),
];

it('leaves each account to who proved its address last, and its ways in to its highest level', async () => {
  const records = newRecords();
  const people = NAMES.map((name) => {
    const mailboxes = Array.from({ length: MAILBOXES }, (_, n) => `${name}.${n}@example.test`);
    return new Person(name, mailboxes, world, records);
  });
  const addresses = people.flatMap(({ mailboxes }) => mailboxes);
  const ownerOf = (address: string | null): string | null =>
    people.find(({ mailboxes }) => address !== null && mailboxes.includes(address))?.name ?? null;
  const reached = { rounds: 0, passed: 0, again: 0, levelled: 0, upgraded: 0 };
  const faults: string[] = [];
  const names = Object.keys(DEEDS) as What[];
  // Chance alone may pass no account on: ada signs up with an address of bob's, who then comes by a code.
  const [ada, bob, cy] = people as [Person, Person, Person];
  const [taken, confirmed] = bob.mailboxes as [string, string];
  for (const email of [taken, confirmed]) {
    await ada.enter('signup', await ada.send('/signup', { email, password: ada.passwords[0]! }));
    ada.claimed.push({ email, password: ada.passwords[0]! });
  }
  // Or no code may be typed outside the session that asked for it: bob confirms an address that ada signed up with.
  await world.deliver();
  expect((await bob.send('/verify-email', bob.code('verification')!))!.status).toBe(200);
  // Nor may it have a guest stay: cy comes as one, and so does bob.
  for (const guest of [bob, cy]) {
    await guest.enter('guest', await guest.send('/signup/anonymous', {}));
    await DEEDS.writeNote(guest, addresses);
  }
  let before = await world.snapshot();
  for (; reached.rounds < ROUNDS && faults.length === 0; reached.rounds++) {
    records.deeds.length = records.opened.length = 0;
    records.round = reached.rounds;
    const byProject = new Set<string>();
    if (reached.rounds % 3 === 0) await world.passMinutes();
    if (random.chance(0.03)) {
      await world.passTenMinutes();
      for (const person of people) for (const session of person.sessions) session.isStrong = false;
    }
    if (reached.rounds % KILL_EVERY === KILL_EVERY - 1) world.servers.killDuringNext();
    const drawn = random.below(100);
    if (reached.rounds === 0) await comeByCode();
    else if (reached.rounds === 1) await stayByAddress();
    else if (drawn < 10) await actAsProject(byProject);
    else if (drawn < 16) await tryAgain();
    else {
      // Now and then two at once.
      const acting = [...people].sort(() => random.below(3) - 1).slice(0, random.chance(0.2) ? 2 : 1);
      await Promise.all(
        acting.map((person) => DEEDS[random.pick(random.chance(0.75) ? OFTEN : names)](person, addresses)),
      );
    }
    await world.deliver();
    const after = await world.snapshot();
    const round: Round = { before, after, byProject, ...records };
    faults.push(...judge(round, ownerOf, records), ...records.twice.map((each) => `3: ${each}`));
    settle(round);
    before = after;
  }
  await tryAll();
  const { kills, requests } = world.servers;
  console.log(`attacks on accounts: ${JSON.stringify({ ...reached, kills, requests, ...records.counts })}`);
  expect(faults, `seed ${seed}`).toEqual([]);
  expect(Math.min(kills, reached.passed, reached.again, reached.levelled, reached.upgraded)).toBeGreaterThan(0);

  async function comeByCode(): Promise<void> {
    await bob.send('/login/code', { email: taken });
    await world.deliver();
    await bob.enter('login/code/verify', await bob.send('/login/code/verify', bob.code('login')!));
  }

  async function stayByAddress(): Promise<void> {
    const session = cy.session()!;
    const more = { token: session.access };
    const body = { email: cy.mailboxes[0]! };
    cy.note('change email', await cy.send('/update-profile', body, { ...more, method: 'PATCH' }), session);
    await world.deliver();
    cy.note('verify', await cy.send('/verify-email', cy.code('email-change')!, more), session);
    await DEEDS.writeNote(cy, addresses);
  }

  /** What the project's server and its operators do. */
  async function actAsProject(byProject: Set<string>): Promise<void> {
    const account = before.size > 0 ? random.pick([...before.values()]) : null;
    const person = random.pick(people);
    const email = random.pick(addresses);
    const invitation = { email, roles: [`role-${random.below(1000)}`], redirect: HOME };
    const acts: [string, string, object?][] = [['POST', '/invites', invitation]];
    if (account) {
      byProject.add(account.id);
      const at = `/users/${account.id}`;
      acts.push(['POST', `${at}/disable`], ['POST', `${at}/enable`], ['POST', `${at}/enable`], ['DELETE', `${at}/mfa`]);
      acts.push(['DELETE', `${at}/sessions`]);
      if (random.chance(0.6)) acts.push(['DELETE', at]);
    }
    const [method, path, body] = random.pick(acts);
    const reply = await person.send(path, body, { method, secret: true });
    const name = `project ${method} ${path.replace(/[0-9a-f]{24}/, ':id')}`;
    records.counts[name] = (records.counts[name] ?? 0) + 1;
    if (account && path.endsWith('/sessions') && isDone(reply)) end(account.id);
  }

  /** What worked once works no more. */
  async function tryAgain(): Promise<void> {
    if (records.spent.length === 0) return;
    const { what, again } = random.pick(records.spent);
    const reply = await again();
    reached.again++;
    if (isDone(reply)) faults.push(`3: ${what} works again`);
  }

  function end(user: string): void {
    records.ends.set(user, (records.ends.get(user) ?? 0) + 1);
  }

  function settle({ before: earlier, after, deeds }: Round): void {
    for (const was of earlier.values()) {
      const is = after.get(was.id);
      if (is && was.user._bsvc.ownership !== is.user._bsvc.ownership) reached.passed++;
      if (is && was.hasFactor) reached.levelled++;
      if (was.user._bsvc.anonymous && is && !is.user._bsvc.anonymous) reached.upgraded++;
      if (!hasEnded(was, is)) continue;
      end(was.id);
      // The session in which it was done goes on.
      for (const { session } of deeds) if (session?.user === was.id) session.ends = records.ends.get(was.id)!;
      // So does one that was opened by what ended the others.
      for (const session of people.flatMap(({ sessions }) => sessions)) {
        if (session.user === was.id && session.round === records.round) session.ends = records.ends.get(was.id)!;
      }
    }
  }

  /** At the end, everything that anybody ever had. */
  async function tryAll(): Promise<void> {
    for (const person of people) {
      for (const { device, stored, user } of person.passkeys) {
        records.opened.length = 0;
        const response = await person.assertion(device);
        await person.enter('last passkey', await person.send('/login/passkey', { response: response! }), {
          ends: null,
          passkey: stored,
        });
        await judgeLast(user);
      }
      await world.passMinutes();
      for (const known of person.claimed) {
        records.opened.length = 0;
        await person.enter('last password', await person.send('/login', known));
        await judgeLast(known.email);
      }
      for (const session of [...person.sessions]) {
        records.opened.length = 0;
        const headers = { 'x-refresh-token': session.refresh };
        const reply = await world.servers.send({ path: '/refresh-token', key: world.project.publishable, headers });
        if (isDone(reply)) records.opened.push({ person: person.name, by: 'refresh', ...session });
        await judgeLast(session.user);
      }
    }
  }

  async function judgeLast(what: string): Promise<void> {
    if (records.opened.length === 0) return;
    const now = await world.snapshot();
    const round: Round = { before: now, after: now, byProject: new Set(), deeds: [], opened: records.opened };
    faults.push(...judge(round, ownerOf, records).map((each) => `${each} (at the end, ${what})`));
  }
});

it('takes no more guesses than a day allows, from however many networks, by whatever route', async () => {
  const victim = new Person('victim', ['victim@example.test'], world, newRecords());
  const [email] = victim.mailboxes as [string];
  const [password] = victim.passwords as [string];
  await victim.send('/users', { email, password, emailVerified: true }, { secret: true });
  const signedIn = await victim.send('/login', { email, password });
  const token = signedIn!.body.accessToken!;
  const begun = await victim.send('/mfa/totp', {}, { token });
  const code = totpCode((begun!.body.data as { secret: string }).secret, Date.now());
  expect((await victim.send('/mfa/totp/confirm', { code }, { token }))!.status).toBe(200);
  // Whoever knows the password: a token is good for five guesses.
  const tokens: string[] = [];
  for (let n = 0; n < 8; n++) {
    const refused = await victim.send('/login', { email, password });
    tokens.push((refused!.body.data as { mfaToken: string }).mfaToken);
  }
  const networks = Array.from({ length: NETWORKS }, (_, n) => `198.51.100.${n}`);
  const told = new Map<string, number>();
  let factors = 0;
  const { publishable: key } = world.project;
  const guess = async (): Promise<void> => {
    // Some often, so that their own bound is met too.
    const network = random.pick(random.chance(0.6) ? networks.slice(0, 2) : networks);
    const [path, body, bearer] = random.pick<[string, object, string?]>([
      ['/login', { email, password: 'a guess' }],
      ['/login/mfa', { mfaToken: random.pick(tokens), totp: '000000' }],
      ['/login/mfa', { mfaToken: random.pick(tokens), recoveryCode: 'aaaaa-aaaaa' }],
      ['/step-up', { totp: '000000' }, token],
      ['/step-up', { recoveryCode: 'aaaaa-aaaaa' }, token],
      ['/step-up', { currentPassword: 'a guess' }, token],
    ]);
    const headers = { 'x-forwarded-for': network };
    const reply = await world.servers.send({ path, body, key, token: bearer, headers });
    const outcome = reply?.body.code ?? 'killed';
    const known = ['INVALID_CREDENTIALS', 'MFA_CODE_INVALID', 'MFA_TOKEN_INVALID', 'ACCOUNT_LOCKED', 'killed'];
    expect(known).toContain(outcome);
    if (outcome === 'MFA_CODE_INVALID') factors++;
    if (known.indexOf(outcome) < 2) told.set(network, (told.get(network) ?? 0) + 1);
  };
  for (let n = 0; n < GUESSES; n += 6) {
    if (n === 30) world.servers.killDuringNext();
    await Promise.all(Array.from({ length: 6 }, guess));
  }
  await victim.send('/login/code', { email });
  await world.deliver();
  const mailed = victim.code('login')!;
  const body = { email, otp: mailed.otp === '000000' ? '000001' : '000000' };
  const guessed = await Promise.all(
    networks.slice(0, 6).map((network) => {
      return world.servers.send({ path: '/login/code/verify', body, key, headers: { 'x-forwarded-for': network } });
    }),
  );
  const right = await victim.send('/login/code/verify', mailed);
  console.log(`guesses told as wrong: ${JSON.stringify({ factors, networks: Object.fromEntries(told) })}`);
  // Guesses from elsewhere leave the last tries of a code to the network that its account is signed in from.
  expect(guessed.map((reply) => reply?.body.code)).toEqual(Array(6).fill('OTP_INVALID'));
  expect(right?.body.code).toBe('MFA_REQUIRED');
  expect(factors).toBeLessThanOrEqual(20);
  expect(Math.max(...told.values())).toBeLessThanOrEqual(5);
  // The bounds were met, so they were what held.
  expect([factors > 10, [...told.values()].includes(5)]).toEqual([true, true]);
});

it('changes no way in of an account with a factor by proofs of less, in whatever order', async () => {
  const reached = { asked: 0, refused: 0 };
  for (let at = 0; at < LEVELS; at++) {
    const person = new Person(`level${at}`, [`level${at}@example.test`], world, newRecords());
    const [email] = person.mailboxes as [string];
    const [password] = person.passwords as [string];
    await person.send('/users', { email, password, emailVerified: true }, { secret: true });
    const { body } = (await person.send('/login', { email, password }))!;
    const token = body.accessToken!;
    const begun = await person.send('/mfa/totp', {}, { token });
    const code = totpCode((begun!.body.data as { secret: string }).secret, Date.now());
    expect((await person.send('/mfa/totp/confirm', { code }, { token }))!.status).toBe(200);
    await person.send('/step-up/code', undefined, { token });
    await world.deliver();
    const proofs = [{}, { currentPassword: password }, person.code('login')!, { totp: '000000' }];
    const before = await world.snapshot();
    for (let n = 0; n < 8; n++) {
      const [method, path, more] = random.pick<[string, string, object?]>([
        ['DELETE', '/mfa/totp'],
        ['POST', '/mfa/recovery-codes'],
        ['POST', '/passkeys/options'],
        ['POST', '/social/acme/link'],
        ['DELETE', '/me'],
        ['DELETE', '/sessions/all'],
        ['PATCH', '/update-profile', { email: `other${at}@example.test` }],
        ['POST', '/change-password', { newPassword: 'another password', currentPassword: password }],
        ['POST', '/step-up'],
      ]);
      if (n === 4 && at % 3 === 0) world.servers.killDuringNext();
      const reply = await person.send(path, { ...random.pick(proofs), ...more }, { method, token });
      reached.asked++;
      if (reply && !isDone(reply)) reached.refused++;
      expect(isDone(reply), `${method} ${path} of seed ${seed}`).toBe(false);
    }
    const after = await world.snapshot();
    const deeds = [
      { person: person.name, what: 'less', user: body.user!._id, session: null, isStrong: false, isDone: false },
    ];
    const round: Round = { before, after, byProject: new Set(), opened: [], deeds };
    expect(judge(round, () => null, newRecords())).toEqual([]);
  }
  console.log(`asked with less than the level: ${JSON.stringify(reached)}`);
  expect(reached.refused).toBeGreaterThan(LEVELS);
});

function newRecords(): Records {
  return { round: -1, opened: [], deeds: [], spent: [], counts: {}, ends: new Map(), twice: [] };
}
