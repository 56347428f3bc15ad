import { ApiError } from '../api-error.js';
import type { GivenFactor, StepUpProof, Mfa, Passkeys } from './factors.js';
import { backOff, randomKey, type Connection } from '../connection.js';
import type { SentBatch } from '../batch.js';
import type { Files } from '../files.js';
import type { Mailer } from '../mail.js';
import type { Invites } from './invites.js';
import { openKeptSession, type Session, type SignedOut } from './kept-session.js';
import type { Identities, Linking } from './linking.js';
import { loadLater } from './load-later.js';
import { openRenewal, type TokenReply } from './renewal.js';
import type { Sessions } from './sessions.js';
import type { Verify } from './verify.js';
import { openStore, platform, reasonOf, sleep, tellListener, type SessionStorage } from '../platform.js';
import type { Part } from '../project.js';
import { pathPart } from '../query.js';

/** An access token, or none. */
export type GivenToken = string | null | undefined;

/** Where a session is kept. */
export interface SessionOptions {
  /** `localStorage` unless said, where there is one; a storage may answer with promises. */
  storage?: SessionStorage;
  /**
   * For servers that act for the user of one request: its access token, or a function that returns it. Nothing is
   * stored, and the token is not renewed; a function is called for each request.
   */
  token?: GivenToken | (() => GivenToken | Promise<GivenToken>);
  /**
   * The refresh token stays in a cookie that no script can read; the project’s allowlist has to name the page’s
   * origin.
   */
  cookies?: boolean;
}

/** Accounts of end users. Every method throws an `ApiError`. */
export interface Auth<P> {
  /** The user as of the last sign-in or `me()`, the same object until it changes; null when no user is signed in. */
  readonly user: Part<P, 'users', 'Document'> | null;
  /** Resolves when the stored session has been read: at once, except where `storage` answers with promises. */
  readonly ready: Promise<void>;
  /**
   * Reports sign-in, sign-out and changes of the user, in other tabs too. `reason` says why no user is signed in:
   * `ended` when the session was ended elsewhere. Ends by the function that it returns.
   */
  onChange(listener: (user: Part<P, 'users', 'Document'> | null, reason?: SignedOut) => void): () => void;
  /** Makes an account and signs in. */
  signUp(user: Part<P, 'users', 'Insert'>): Promise<Part<P, 'users', 'Document'>>;
  signIn(credentials: { email: string; password: string }): Promise<Part<P, 'users', 'Document'>>;
  /** Signs in as an anonymous user, if the project allows them. */
  anonymous(fields?: Partial<Part<P, 'users', 'Insert'>>): Promise<Part<P, 'users', 'Document'>>;
  readonly code: CodeSignIn<P>;
  readonly mfa: Mfa<Part<P, 'users', 'Document'>>;
  readonly passkeys: Passkeys<Part<P, 'users', 'Document'>>;
  /** Ends the session here even when the service cannot be reached. */
  signOut(): Promise<void>;
  me(): Promise<Part<P, 'users', 'Document'>>;
  /** New tokens; otherwise got when they are needed. */
  refresh(): Promise<void>;
  /** A valid access token, renewed when it is about to expire; null when no user is signed in. */
  token(): Promise<string | null>;
  /** Proves once more who is signed in: answers `STEP_UP_REQUIRED` for ten minutes. */
  stepUp(proof: StepUpProof): Promise<void>;
  /** Has a code for `stepUp` mailed to the user. */
  sendStepUpCode(): Promise<void>;
  readonly sessions: Sessions;
  /** Deletes the account for good, and signs out. Needs a proof of the last ten minutes, here or by `stepUp`. */
  deleteAccount(proof?: StepUpProof): Promise<void>;
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
  /** Finds a user by the unique field `username`, with the public fields only. */
  publicProfile(username: string): Promise<Part<P, 'users', 'Public'>>;
  /** The address to send the browser to; it comes back to `redirect`. */
  socialUrl(provider: string, redirect?: string): Promise<string>;
  /** Signs in with the `rtCode` that came back in the address of the page. */
  finishSocial(rtCode: string): Promise<Part<P, 'users', 'Document'>>;
  readonly link: Linking;
  readonly identities: Identities;
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

/** `auth`, and what is loaded with the rest of it. */
interface Parts<P> {
  auth: Auth<P>;
  batch: SentBatch;
  files: Files;
  mail: Mailer;
}

export function openAuth<P>(connection: Connection, options: SessionOptions): Parts<P> {
  const { storage, token: given, cookies } = options;
  const isGiven = 'token' in options;
  const store = openStore(isGiven ? undefined : storage);
  const kept = openKeptSession(connection.name, store);
  const { loading, read, write, end, keep, onChange } = kept;
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
    if (isGiven) throw new ApiError('A token is given: use another client', { status: 0, code: 'TOKEN_GIVEN' });
    const { user, accessToken, refreshToken } = await post<TokenReply>(path, body, mode, true);
    await write({ accessToken, user, ...(refreshToken !== undefined && { refreshToken }) });
    return user as never;
  };
  const presented = ({ refreshToken }: Session): Record<string, string> => ({
    ...mode,
    ...(refreshToken !== undefined && { 'x-refresh-token': refreshToken }),
  });

  const { renew, token } = openRenewal(connection, kept, presented);
  const giveToken = async (): Promise<string | null> => (typeof given === 'function' ? await given() : given) || null;
  connection.tokens = isGiven
    ? {
        token: async () => (await giveToken()) ?? undefined,
        renew: async (stale) => (await giveToken()) !== stale,
      }
    : {
        async token() {
          await loading;
          return read()?.accessToken;
        },
        renew,
        end: (refused) => read()?.accessToken === refused && void end('ended'),
      };

  const { batch, files, mail, ...later } = loadLater({
    ...{ connection, enter, keep, kept, store, pathPart },
    tools: { platform, randomKey, backOff, sleep, reasonOf, tellListener },
    refuse: (message, failure) => new ApiError(message, failure),
  });
  const auth = {
    get user() {
      return read()?.user ?? null;
    },
    ready: Promise.resolve(loading),
    onChange,
    signUp: (user: object) => enter('signup', user),
    signIn: (credentials: object) => enter('login', credentials),
    anonymous: (fields: object = {}) => enter('signup/anonymous', fields),
    async signOut() {
      if (loading) await loading;
      const session = read();
      void end('signed-out');
      if (session) await post('logout', undefined, presented(session), true);
    },
    me: async () => keep(await connection.send({ path: '/userAuth/me' })),
    async refresh() {
      if (!(await renew(undefined))) {
        throw new ApiError('Nobody is signed in', { status: 401, code: 'REFRESH_INVALID' });
      }
    },
    token: isGiven ? giveToken : token,
    ...later,
  };
  // The events' types depend on P, which only the interface knows.
  return { auth: auth as unknown as Auth<P>, batch, files, mail };
}
