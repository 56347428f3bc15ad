import { ApiError } from '../api-error.js';
import type { GivenFactor, GivenProof, Mfa, Passkeys } from './factors.js';
import type { Connection } from '../connection.js';
import type { Invites } from './invites.js';
import { openKeptSession, type Session } from './kept-session.js';
import type { Linking } from './linking.js';
import { loadLater } from './load-later.js';
import { openRenewal, type TokenReply } from './renewal.js';
import { openSocial } from './social.js';
import type { Verify } from './verify.js';
import type { SessionStorage } from '../platform.js';
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
  /** Reports sign-in and sign-out, of other tabs too. Ends by the function that it returns. */
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
   * Ends the session of an id, `others` than this or `all`; resolves to how many. Any but the current one needs a proof
   * of the last ten minutes, here or by `stepUp`.
   */
  end(which: string, proof?: GivenProof): Promise<number>;
}

export function openAuth<P>(connection: Connection, storage: SessionStorage, cookies = false): Auth<P> {
  const kept = openKeptSession(connection.name, storage);
  const { read, write, change, keep, onChange } = kept;
  const mode = { 'x-refresh-token-mode': cookies ? 'cookie' : 'header' };

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
    change({ accessToken, user, ...(refreshToken !== undefined && { refreshToken }) });
    return user as never;
  };
  const presented = ({ refreshToken }: Session): Record<string, string> => ({
    ...mode,
    ...(refreshToken !== undefined && { 'x-refresh-token': refreshToken }),
  });

  const { renew, token } = openRenewal(connection, kept, presented);
  connection.tokens = { token: () => read()?.accessToken, renew };

  const auth = {
    get user() {
      return read()?.user ?? null;
    },
    onChange,
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
      change(null);
      if (session) await post('logout', undefined, presented(session), true);
    },
    me: async () => keep(await connection.send({ path: '/userAuth/me' })),
    async refresh() {
      if (!(await renew(undefined))) {
        throw new ApiError('Nobody is signed in', { status: 401, code: 'REFRESH_INVALID' });
      }
    },
    token,
    async stepUp(proof: object) {
      const { accessToken } = await post<TokenReply>('step-up', proof);
      const session = read();
      if (session) write({ ...session, accessToken });
    },
    async deleteAccount(proof?: object) {
      await connection.send({ method: 'DELETE', path: '/userAuth/me', body: proof });
      change(null);
    },
    sendStepUpCode: async () => void (await post('step-up/code', undefined)),
    sessions: openSessions(connection),
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
    ...openSocial(connection, storage, enter),
    ...loadLater({ connection, enter, keep, pathPart, refuse: (message, failure) => new ApiError(message, failure) }),
  };
  // The events' types depend on P, which only the interface knows.
  return auth as unknown as Auth<P>;
}

function openSessions(connection: Connection): Sessions {
  return {
    list: async () =>
      (await connection.send<{ data: { items: OwnSession[] } }>({ path: '/userAuth/sessions' })).data.items,
    async end(which, proof) {
      const path = `/userAuth/sessions/${pathPart(which, 'INVALID_NAME')}`;
      const { data } = await connection.send<{ data: { ended: number } }>({ method: 'DELETE', path, body: proof });
      return data.ended;
    },
  };
}
