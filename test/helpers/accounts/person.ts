import { createHash, randomUUID } from 'node:crypto';
import { totpCode } from '../../../src/features/users/factors/totp.js';
import type { CodePurpose } from '../../../src/features/users/codes/one-time-code.js';
import { passkeyId } from '../../../src/features/users/accounts/sign-in-methods.js';
import type { OidcIssuer } from '../oidc-issuer.js';
import { openAuthenticator, type SoftAuthenticator } from '../soft-authenticator.js';
import { SITE, type AccountWorld, type Letter } from './account-world.js';
import type { Reply } from './servers.js';

/** A session as its person keeps it. */
export interface KeptSession {
  user: string;
  access: string;
  refresh: string;
  /** The ends that the account had seen when it began. */
  ends: number;
  /** The round in which it began. */
  round: number;
  /** A second factor was shown in it within ten minutes. */
  isStrong: boolean;
}

/** An account that was opened, and by what. */
export interface Opened {
  person: string;
  user: string;
  by: string;
  /** The ends that the account had seen when what opened it was given out; null where it is not bound to them. */
  ends: number | null;
  /** A passkey, by its stored id. */
  passkey?: string;
}

/** What a person did in a round: for the judgement of what became of the accounts. */
export interface Deed {
  person: string;
  what: string;
  /** The account of the session that was used. */
  user: string | null;
  session: KeptSession | null;
  /** With a proof of level 2 in the session or the body. */
  isStrong: boolean;
  isDone: boolean;
}

export interface Records {
  round: number;
  opened: Opened[];
  deeds: Deed[];
  /** What works once and has worked, to be tried again. */
  spent: { what: string; again: () => Promise<Reply | null> }[];
  counts: Record<string, number>;
  /** Times that the sessions of an account were ended. */
  ends: Map<string, number>;
  twice: string[];
}

export const isDone = (reply: Reply | null): boolean => reply !== null && reply.status < 300;
const claimsOf = (token: string): { amr?: string[] } =>
  JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { amr?: string[] };
const SECOND = ['totp', 'recovery', 'passkey'];

/** A person with mailboxes, a provider, passwords and devices that nobody else has. */
export class Person {
  readonly sessions: KeptSession[] = [];
  readonly passwords: string[];
  /** Signed up with, whoever has the address. */
  readonly claimed: { email: string; password: string }[] = [];
  readonly passkeys: { user: string; device: SoftAuthenticator; stored: string }[] = [];
  readonly apps: { user: string; secret: string; recovery: string[] }[] = [];
  pending: { token: string; ends: number; user: string }[] = [];

  constructor(
    readonly name: string,
    readonly mailboxes: readonly string[],
    readonly world: AccountWorld,
    readonly records: Records,
  ) {
    this.passwords = [`password of ${name}`];
  }

  get random() {
    return this.world.random;
  }

  send(path: string, body?: object, more: { method?: string; token?: string; secret?: boolean } = {}, at?: number) {
    const { publishable, secret } = this.world.project;
    const { method, token } = more;
    return this.world.servers.send({ path, body, method, token, key: more.secret ? secret : publishable }, at);
  }

  /** Sends what works once from one process or from three at a time, and remembers it. */
  async once(what: string, send: (at?: number) => Promise<Reply | null>): Promise<Reply | null> {
    const replies = await Promise.all(this.random.chance(0.3) ? [send(0), send(1), send(2)] : [send()]);
    const done = replies.filter(isDone);
    if (done.length > 1) this.records.twice.push(`${what}: ${done.length} at once`);
    if (done.length > 0) this.records.spent.push({ what, again: send });
    return done[0] ?? replies.find((each) => each?.status === 401) ?? replies[0]!;
  }

  note(what: string, reply: Reply | null, session: KeptSession | null = null, isStrong = false): boolean {
    const outcome = reply === null ? 'killed' : isDone(reply) ? 'done' : 'refused';
    for (const name of [outcome, `${what} ${outcome}`])
      this.records.counts[name] = (this.records.counts[name] ?? 0) + 1;
    this.records.deeds.push({
      ...{ person: this.name, what, user: session?.user ?? null, session },
      ...{ isStrong: isStrong || session?.isStrong === true, isDone: isDone(reply) },
    });
    return isDone(reply);
  }

  /** Keeps the session that a reply opened; goes on with the second factor where one is asked for. */
  async enter(what: string, reply: Reply | null, of: Pick<Opened, 'ends' | 'passkey'> = { ends: null }): Promise<void> {
    if (reply?.body.code === 'MFA_REQUIRED') {
      // What it has proved stands, whether or not the factor is given.
      this.note(what, reply);
      const { mfaToken } = reply.body.data as { mfaToken: string };
      this.pending.push({ token: mfaToken, ends: -1, user: '' });
      if (this.random.chance(0.8)) await this.finishWithFactor(mfaToken);
      return;
    }
    if (!this.note(what, reply) || !reply?.body.accessToken) return;
    const { accessToken, user } = reply.body;
    const by = claimsOf(accessToken).amr ?? [];
    this.records.opened.push({ person: this.name, user: user!._id, by: by.join('+'), ...of });
    this.sessions.push({
      ...{ user: user!._id, access: accessToken, refresh: reply.headers.get('x-refresh-token')! },
      ...{
        round: this.records.round,
        ends: this.records.ends.get(user!._id) ?? 0,
        isStrong: by.some((each) => SECOND.includes(each)),
      },
    });
  }

  async finishWithFactor(mfaToken: string): Promise<void> {
    const app = this.apps.length > 0 ? this.random.pick(this.apps) : null;
    const { code, secret, passkey } = await this.secondFactor(app);
    if (!code) return;
    const sendBoth = (at?: number) => this.send('/login/mfa', { mfaToken, ...code }, {}, at);
    const reply = await this.once(`login/mfa by ${Object.keys(code)[0]}`, sendBoth);
    if (secret !== undefined && app) app.recovery = app.recovery.filter((each) => each !== secret);
    await this.enter('login/mfa', reply, { ends: null, passkey });
  }

  /** A code of an app, a recovery code, or the answer of a passkey. */
  async secondFactor(
    app: Person['apps'][number] | null,
  ): Promise<{ code?: object; secret?: string; passkey?: string }> {
    const [recovery] = app?.recovery ?? [];
    if (this.passkeys.length > 0 && this.random.chance(app ? 0.2 : 1)) {
      const { device, stored } = this.random.pick(this.passkeys);
      const response = await this.assertion(device);
      return response ? { code: { passkey: response }, passkey: stored } : {};
    }
    if (!app) return {};
    if (recovery !== undefined && this.random.chance(0.3))
      return { code: { recoveryCode: recovery }, secret: recovery };
    return { code: { totp: totpCode(app.secret, Date.now()) } };
  }

  async assertion(device: SoftAuthenticator): Promise<object | null> {
    const options = await this.send('/login/passkey/options');
    return isDone(options) ? device.get(options!.body as unknown as { challenge: string }) : null;
  }

  /** The newest code of a kind in one of the own mailboxes. */
  code(purpose: CodePurpose): { email: string; otp: string } | null {
    const isMine = (each: Letter): boolean => each.purpose === purpose && this.mailboxes.includes(each.email);
    const mine = this.world.letters.filter(isMine);
    const letter = mine.length === 0 ? null : this.random.chance(0.85) ? mine.at(-1)! : this.random.pick(mine);
    return letter && { email: letter.email, otp: letter.code };
  }

  session(): KeptSession | null {
    if (this.sessions.length === 0) return null;
    return this.random.chance(0.8) ? this.sessions.at(-1)! : this.random.pick(this.sessions.slice(-6));
  }

  async socialToken(): Promise<{ idToken: string; nonce: string }> {
    const nonce = randomUUID();
    const hash = createHash('sha256').update(nonce).digest('hex');
    return { idToken: await this.atIssuer((issuer) => issuer.idToken(hash)), nonce };
  }

  /** Goes to the provider and comes back with the code of a link. */
  async linkCode(url: string): Promise<string | null> {
    const { servers, project } = this.world;
    const { pathname, search } = new URL((await this.atIssuer((issuer) => issuer.visit(url))).address);
    const back = await servers.send({ method: 'GET', path: `${pathname}${search}`, key: project.publishable });
    const home = back?.headers.get('location');
    return home ? new URL(home).searchParams.get('rtCode') : null;
  }

  /** One person at a time is the one who comes there. */
  private atIssuer<T>(work: (issuer: OidcIssuer) => Promise<T>): Promise<T> {
    return this.world.inTurn(() => {
      const { issuer } = this.world;
      issuer.person = { sub: this.name, email: this.mailboxes[0], emailVerified: true, name: this.name };
      return work(issuer);
    });
  }

  newDevice(): { device: SoftAuthenticator; stored: string } {
    const device = openAuthenticator(SITE.rpId, SITE.origin);
    return { device, stored: passkeyId(this.world.project.project, device.id) };
  }

  password(): string {
    return this.random.chance(0.7) ? this.passwords.at(-1)! : this.random.pick(this.passwords);
  }

  newPassword(): string {
    const password = `password ${this.passwords.length} of ${this.name}`;
    this.passwords.push(password);
    return password;
  }
}
