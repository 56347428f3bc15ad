import { ApiError } from './api-error.js';
import type { Connection } from './connection.js';

/** A code of the user’s app, or one of the recovery codes. */
export interface GivenFactor {
  totp?: string;
  recoveryCode?: string;
}

/** A proof of the last ten minutes, where the session has none: as for `stepUp`. */
type Proof = GivenFactor & { currentPassword?: string; otp?: string };

/** The second factors of an account. */
export interface Factors {
  totp: { since: string } | null;
  /** How many recovery codes are left. */
  recoveryCodes: number;
  /** From then on there are none: the project takes them off. */
  resetAt: string | null;
}

/** The second factor of the account, where the project allows it. */
export interface Mfa<User> {
  /**
   * Finishes a sign-in that threw `MFA_REQUIRED`: takes the error, or the `mfaToken` of its `data`, and a code.
   */
  signIn(refused: string | ApiError, factor: GivenFactor): Promise<User>;
  show(): Promise<Factors>;
  /** Begins to enrol an app; `uri` is for a QR code. Needs a proof of the last ten minutes, here or by `stepUp`. */
  beginTotp(proof?: Proof): Promise<{ secret: string; uri: string }>;
  /** Enrols the app by a code of it; resolves to the recovery codes, which are shown only now. */
  confirmTotp(code: string): Promise<string[]>;
  removeTotp(proof?: Proof): Promise<void>;
  /** Ten new recovery codes; the old ones end. */
  renewRecoveryCodes(proof?: Proof): Promise<string[]>;
}

export function openMfa<User>(
  connection: Connection,
  enter: (path: string, body: unknown) => Promise<User>,
): Mfa<User> {
  const send = async <T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> =>
    (await connection.send<{ data: T }>({ method, path: `/userAuth/mfa${path}`, body, repeat: 'no' })).data;
  const codes = async (path: string, body?: unknown): Promise<string[]> =>
    (await send<{ recoveryCodes: string[] }>('POST', path, body)).recoveryCodes;
  return {
    signIn: (refused, factor) =>
      enter('login/mfa', { ...factor, mfaToken: refused instanceof ApiError ? refused.data.mfaToken : refused }),
    show: () => send('GET', ''),
    beginTotp: (proof) => send('POST', '/totp', proof),
    confirmTotp: (code) => codes('/totp/confirm', { code }),
    removeTotp: (proof) => send('DELETE', '/totp', proof),
    renewRecoveryCodes: (proof) => codes('/recovery-codes', proof),
  };
}
