import { ApiError } from '../api-error.js';
import { expiryOf } from './expiry.js';
import type { GivenFactor, GivenProof, Mfa, Passkeys } from './factors.js';
import { randomKey, type Connection, type TokenSource } from '../connection.js';
import type { Invites } from './invites.js';
import type { Linking } from './linking.js';
import { loadLater } from './load-later.js';
import type { Verify } from './verify.js';
import { isDone, lock, markDone, platform, sleep, tellListener, type SessionStorage } from '../platform.js';
import type { Part } from '../project.js';
import { pathPart } from '../query.js';

/** Where a session is kept. */
export interface SessionOptions {
  /** `localStorage` unless said, where there is one. */
  storage?: SessionStorage;
  /**
   * The refresh token stays in a cookie that no script can read; the project’s allowlist has to name the page’s
   * origin.
   */
  cookies?: boolean;
}

/** Accounts of end users. Every method throws an `ApiError`. */
export interface Auth<P> {
  /** The user as of the last sign-in or `me()`; null when nobody is signed in. */
  readonly user: Part<P, 'users', 'Document'> | null;
  /** Tells of sign-in and sign-out, of other tabs too. Ends by the function that it returns. */
  onChange(listener: (user: Part<P, 'users', 'Document'> | null) => void): () => void;
  /** Makes an account and signs in. */
  signUp(user: Part<P, 'users', 'Insert'>): Promise<Part<P, 'users', 'Document'>>;
  signIn(credentials: { email: string; password: string }): Promise<Part<P, 'users', 'Document'>>;
  /** Signs in as a guest, a user without an address, where the project has guests. */
  anonymous(fields?: Partial<Part<P, 'users', 'Insert'>>): Promise<Part<P, 'users', 'Document'>>;
  readonly code: CodeSignIn<P>;
  readonly mfa: Mfa<Part<P, 'users', 'Document'>>;
  readonly passkeys: Passkeys<Part<P, 'users', 'Document'>>;
  /** Ends the session here even when the service cannot be reached. */
  signOut(): Promise<void>;
  me(): Promise<Part<P, 'users', 'Document'>>;
  /** New tokens; otherwise got when they are needed. */
  refresh(): Promise<void>;
  /** An access token that works now, renewed when it is about to expire; null when nobody is signed in. */
  token(): Promise<string | null>;
  /** Proves once more who is signed in: answers `STEP_UP_REQUIRED` for ten minutes. */
  stepUp(proof: GivenProof): Promise<void>;
  /** Has a code for `stepUp` mailed to the user. */
  sendStepUpCode(): Promise<void>;
  readonly sessions: Sessions;
  /** Deletes the account for good, and signs out. Needs a proof of the last ten minutes, here or by `stepUp`. */
  deleteAccount(proof?: GivenProof): Promise<void>;
  updateProfile(
    changes: Part<P, 'users', 'Update'> & { currentPassword?: string; password?: string },
  ): Promise<Part<P, 'users', 'Document'>>;
  /** Ends all other sessions. Of an account with a second factor it is wanted too, here or by `stepUp`. */
  changePassword(passwords: { currentPassword: string; newPassword: string } & GivenFactor): Promise<void>;
  /** Has a code mailed. */
  requestPasswordReset(email: string): Promise<void>;
  resetPassword(reset: { email: string; otp: string; newPassword: string }): Promise<void>;
  verifyEmail(code: { email: string; otp: string }): Promise<void>;
  resendVerification(email: string): Promise<void>;
  /** Finds a user by the unique field `username`, with those fields alone that everybody may see. */
  publicProfile(username: string): Promise<Part<P, 'users', 'Public'>>;
  /** The address to send the browser to; it comes back to `redirect`. */
  socialUrl(provider: string, redirect?: string): Promise<string>;
  /** Signs in with the `rtCode` that came back in the address of the page. */
  finishSocial(rtCode: string): Promise<Part<P, 'users', 'Document'>>;
  readonly link: Linking;
  readonly invites: Invites<Part<P, 'users', 'Document'>>;
  /** For servers: whose access token came with a request. */
  verify: Verify<Part<P, 'users', 'Document'>>;
}

/** Sign-in by a mailed code, where the project allows it. */
export interface CodeSignIn<P> {
  /**
   * Has a code mailed. With `redirect`, one of the project’s addresses, the mail links to that page, which finds
   * `#email=…&otp=…` behind its own address.
   */
  send(email: string, redirect?: string): Promise<void>;
  signIn(code: { email: string; otp: string }): Promise<Part<P, 'users', 'Document'>>;
}

/** A session of the user, as the user sees it. */
export interface OwnSession {
  id: string;
  createdAt: string;
  usedAt: string;
  expiresAt: string;
  /** The network of its client. */
  place: string | null;
  userAgent: string | null;
  /** True for the session of this client. */
  current: boolean;
  /** How the user proved to be the user: `pwd`, `otp`, `social`, `totp`, `recovery`, `passkey`. */
  amr: string[];
}

/** Where the user is signed in. */
export interface Sessions {
  /** The one used last first. */
  list(): Promise<OwnSession[]>;
  /**
   * Ends the session of an id, `others` than this or `all`; resolves to how many. Several need a proof of the last ten
   * minutes, here or by `stepUp`.
   */
  end(which: string, proof?: GivenProof): Promise<number>;
}

/** A session as it is stored. */
interface Session {
  accessToken: string;
  /** None in cookie mode. */
  refreshToken?: string;
  user: unknown;
}

interface TokenReply {
  accessToken: string;
  refreshToken?: string;
  user?: unknown;
}

/** Between looks for what another tab has stored, and how many before this one acts itself. */
const NO_CRYPTO =
  'Social sign-in needs Web Crypto (crypto.getRandomValues and crypto.subtle), which this platform lacks: load a polyfill before the client';
const LOOK_MS = 10;
const MAX_LOOKS = 100;

const EXPIRING_MS = 30_000;

/** True if a token will expire within half a minute by the clock here, or cannot be read. */
function isExpiring(token: string): boolean {
  const expiresMs = expiryOf(token);
  return expiresMs === null || expiresMs < Date.now() + EXPIRING_MS;
}

const idOf = (user: unknown): unknown => (user as { _id?: unknown } | undefined)?._id;

export function openAuth<P>(connection: Connection, storage: SessionStorage, cookies = false): Auth<P> {
  const place = connection.name;
  const verifierPlace = `${place}:verifier`;
  const listeners = new Set<(user: never) => void>();
  const mode = { 'x-refresh-token-mode': cookies ? 'cookie' : 'header' };

  const read = (): Session | null => {
    try {
      const session = JSON.parse(storage.getItem(place) ?? 'null') as Session | null;
      return typeof session?.accessToken === 'string' ? session : null;
    } catch {
      // Not written here, or cut off: nobody is signed in.
      return null;
    }
  };
  const tell = (): void => listeners.forEach((listener) => tellListener(listener, (read()?.user ?? null) as never));
  const write = (session: Session | null): void => {
    if (session) storage.setItem(place, JSON.stringify(session));
    else storage.removeItem(place);
  };
  const post = <T>(path: string, body: unknown, headers?: Record<string, string>, isAnonymous = false): Promise<T> =>
    connection.send<T>({
      method: 'POST',
      path: `/userAuth/${path}`,
      body,
      repeat: 'no',
      isAnonymous,
      ...(headers && { headers }),
    });
  const enter = async (path: string, body: unknown): Promise<never> => {
    const { user, accessToken, refreshToken } = await post<TokenReply>(path, body, mode, true);
    write({ accessToken, user, ...(refreshToken !== undefined && { refreshToken }) });
    tell();
    return user as never;
  };
  const presented = ({ refreshToken }: Session): Record<string, string> => ({
    ...mode,
    ...(refreshToken !== undefined && { 'x-refresh-token': refreshToken }),
  });

  /** Waits for the tokens of another tab: they come to this one a moment after they were stored there. */
  const storedByOther = async (stale: string): Promise<void> => {
    for (let looks = 0; looks < MAX_LOOKS && read()?.accessToken === stale; looks++) await sleep(LOOK_MS);
  };

  /**
   * One at a time in all tabs: those that waited find what the first one got. False when nobody is signed in any more.
   */
  const renew = (stale: string | undefined): Promise<boolean> =>
    lock(place, async () => {
      const renewed = `${place}:${stale?.slice(-32)}`;
      if (stale !== undefined && (await isDone(renewed))) await storedByOther(stale);
      const session = read();
      if (!session || (stale !== undefined && session.accessToken !== stale)) return session !== null;
      try {
        // The service gives the same successor twice within seconds: repeating it does no harm.
        const reply = await connection.send<TokenReply>({
          method: 'POST',
          path: '/userAuth/refresh-token',
          headers: presented(session),
          isAnonymous: true,
        });
        const { accessToken, refreshToken } = reply;
        // A sign-out or sign-in in the meantime must not be undone.
        if (read()?.accessToken !== session.accessToken) return read() !== null;
        write({ ...session, accessToken, ...(refreshToken !== undefined && { refreshToken }) });
        if (stale !== undefined) await markDone(renewed);
        return true;
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 401) throw error;
        write(null);
        tell();
        return false;
      }
    });

  const tokens: TokenSource = { token: () => read()?.accessToken, renew };
  connection.tokens = tokens;
  /** Keeps what the service says of the user; unless another one has signed in meanwhile. */
  const keep = <T>(user: T): T => {
    const session = read();
    if (session && idOf(session.user) === idOf(user)) write({ ...session, user });
    return user;
  };
  const onStorage = ({ key }: { key?: string | null }): void => {
    if (key === place) tell();
  };

  const auth = {
    get user() {
      return read()?.user ?? null;
    },
    onChange(listener: (user: never) => void) {
      if (listeners.size === 0) platform.addEventListener?.('storage', onStorage);
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) platform.removeEventListener?.('storage', onStorage);
      };
    },
    signUp: (user: object) => enter('signup', user),
    signIn: (credentials: object) => enter('login', credentials),
    anonymous: (fields: object = {}) => enter('signup/anonymous', fields),
    code: {
      send: async (email: string, redirect?: string) =>
        void (await post('login/code', { email, ...(redirect !== undefined && { redirect }) }, undefined, true)),
      signIn: (code: object) => enter('login/code/verify', code),
    },
    async signOut() {
      const session = read();
      write(null);
      tell();
      if (session) await post('logout', undefined, presented(session), true);
    },
    me: async () => keep(await connection.send({ path: '/userAuth/me' })),
    async refresh() {
      if (!(await renew(undefined))) {
        throw new ApiError('Nobody is signed in', { status: 401, code: 'REFRESH_INVALID' });
      }
    },
    async token() {
      const session = read();
      if (!session || !isExpiring(session.accessToken)) return session?.accessToken ?? null;
      return (await renew(session.accessToken)) ? (read()?.accessToken ?? null) : null;
    },
    async stepUp(proof: object) {
      const { accessToken } = await post<TokenReply>('step-up', proof);
      const session = read();
      if (session) write({ ...session, accessToken });
    },
    async deleteAccount(proof?: object) {
      await connection.send({ method: 'DELETE', path: '/userAuth/me', body: proof });
      write(null);
      tell();
    },
    sendStepUpCode: async () => void (await post('step-up/code', undefined)),
    sessions: {
      list: async () =>
        (await connection.send<{ data: { items: OwnSession[] } }>({ path: '/userAuth/sessions' })).data.items,
      async end(which: string, proof?: object) {
        const path = `/userAuth/sessions/${pathPart(which, 'INVALID_NAME')}`;
        const { data } = await connection.send<{ data: { ended: number } }>({ method: 'DELETE', path, body: proof });
        return data.ended;
      },
    },
    async updateProfile(changes: object) {
      const call = { method: 'PATCH', path: '/userAuth/update-profile', body: changes } as const;
      return keep((await connection.send<{ data: unknown }>(call)).data);
    },
    changePassword: async (passwords: object) => void (await post('change-password', passwords)),
    requestPasswordReset: async (email: string) => void (await post('request-password-reset', { email })),
    resetPassword: async (reset: object) => void (await post('reset-password', reset)),
    verifyEmail: async (code: object) => void (await post('verify-email', code)),
    resendVerification: async (email: string) => void (await post('resend-verification-otp', { email })),
    publicProfile: async (username: string) =>
      connection.send({ path: `/userAuth/public/${pathPart(username, 'INVALID_NAME')}` }),
    async socialUrl(provider: string, redirect?: string) {
      const { subtle } = platform.crypto ?? {};
      if (!subtle) throw new ApiError(NO_CRYPTO, { status: 0, code: 'NO_CRYPTO' });
      const verifier = randomKey() + randomKey();
      storage.setItem(verifierPlace, verifier);
      const digest = await subtle.digest('SHA-256', new TextEncoder().encode(verifier));
      const challenge = btoa(String.fromCharCode(...new Uint8Array(digest)));
      const query = new URLSearchParams({
        key: connection.key,
        code_challenge: challenge.replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, ''),
        ...(redirect !== undefined && { redirect }),
      });
      return `${connection.url}/api/userAuth/social/${pathPart(provider, 'INVALID_NAME')}/start?${query}`;
    },
    ...loadLater({ connection, enter, keep, pathPart, refuse: (message, failure) => new ApiError(message, failure) }),
    async finishSocial(rtCode: string) {
      const verifier = storage.getItem(verifierPlace);
      storage.removeItem(verifierPlace);
      return enter('social/exchange', { rtCode, ...(verifier !== null && { code_verifier: verifier }) });
    },
  };
  // The events' types depend on P, which only the interface knows.
  return auth as unknown as Auth<P>;
}
