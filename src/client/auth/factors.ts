import type { ApiError } from '../api-error.js';
import type { Account } from './account.js';

/** A code of the user’s app, one of the recovery codes, or a passkey. */
export interface GivenFactor {
  totp?: string;
  recoveryCode?: string;
  /** The answer of the browser to `passkeys.challenge()`. */
  passkey?: object;
}

/**
 * A proof of who is signed in: the password, or a code that `sendStepUpCode` has mailed; with a second factor a code of
 * the app or a recovery code.
 */
export interface StepUpProof extends GivenFactor {
  currentPassword?: string;
  otp?: string;
}

/** The second factors of an account. */
export interface Factors {
  totp: { since: string } | null;
  /** How many recovery codes are left. */
  recoveryCodes: number;
  /** When a pending MFA reset takes effect. */
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
  beginTotp(proof?: StepUpProof): Promise<{ secret: string; uri: string }>;
  /** Enrols the app by a code of it; resolves to the recovery codes, which are shown only now. */
  confirmTotp(code: string): Promise<string[]>;
  removeTotp(proof?: StepUpProof): Promise<void>;
  /** Ten new recovery codes; the old ones end. */
  renewRecoveryCodes(proof?: StepUpProof): Promise<string[]>;
}

export function openMfa<User>({ connection, enter }: Account<User>): Mfa<User> {
  const send = async <T>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T> =>
    (await connection.send<{ data: T }>({ method, path: `/userAuth/mfa${path}`, body, repeat: 'no' })).data;
  const codes = async (path: string, body?: unknown): Promise<string[]> =>
    (await send<{ recoveryCodes: string[] }>('POST', path, body)).recoveryCodes;
  return {
    signIn: (refused, factor) =>
      enter('login/mfa', { ...factor, mfaToken: typeof refused === 'string' ? refused : refused.data.mfaToken }),
    show: () => send('GET', ''),
    beginTotp: (proof) => send('POST', '/totp', proof),
    confirmTotp: (code) => codes('/totp/confirm', { code }),
    removeTotp: (proof) => send('DELETE', '/totp', proof),
    renewRecoveryCodes: (proof) => codes('/recovery-codes', proof),
  };
}

/** A passkey of the user. */
export interface Passkey {
  id: string;
  name: string;
  createdAt: string;
  usedAt: string | null;
  /** Kept by a service of the user’s, and so on several devices. */
  backedUp: boolean;
}

/** Passkeys, in browsers, where the project has switched them on. */
export interface Passkeys<User> {
  /** Has the browser ask for a passkey and signs in with it. */
  signIn(): Promise<User>;
  /** Has the browser ask for a passkey: for `stepUp({ passkey })` and `mfa.signIn(error, { passkey })`. */
  challenge(): Promise<object>;
  /** Has the browser make one. Needs a proof of the last ten minutes, here or by `stepUp`. */
  register(name?: string, proof?: StepUpProof): Promise<Passkey>;
  list(): Promise<Passkey[]>;
  rename(id: string, name: string): Promise<Passkey>;
  remove(id: string, proof?: StepUpProof): Promise<void>;
}

/** What browsers answer, as far as it is used here; the types of browsers are not those of servers. */
interface Credential {
  id: string;
  rawId: ArrayBuffer;
  type: string;
  response: Record<string, unknown> & { getTransports?: () => string[] };
  getClientExtensionResults(): object;
}

interface Credentials {
  get(options: object): Promise<Credential | null>;
  create(options: object): Promise<Credential | null>;
}

const toBytes = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (character) => character.charCodeAt(0));
const toText = (bytes: ArrayBuffer): string =>
  btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replace(/\+/g, '-')
    .replace(/\//g, '_')
    .replace(/=+$/, '');

/** A credential as JSON: every buffer as base64url. */
function toJson(credential: Credential): object {
  const { response } = credential;
  const names = ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle'];
  const parts = names.flatMap((name) => {
    const value = response[name];
    return value instanceof ArrayBuffer ? [[name, toText(value)]] : [];
  });
  const transports = response.getTransports?.();
  return {
    id: credential.id,
    rawId: toText(credential.rawId),
    type: credential.type,
    response: { ...(Object.fromEntries(parts) as object), ...(transports && { transports }) },
    clientExtensionResults: credential.getClientExtensionResults(),
  };
}

const NOT_ANSWERED = { status: 0, code: 'PASSKEY_NOT_ANSWERED' };

/** What the browser answers, as JSON; its own refusal (the user said no, another site) as an `ApiError`. */
async function ask(refuse: Account<unknown>['refuse'], by: 'get' | 'create', publicKey: object): Promise<object> {
  const { navigator } = globalThis as { navigator?: { credentials?: Credentials } };
  if (!navigator?.credentials) throw refuse('There are no passkeys here: use a browser', NOT_ANSWERED);
  const credential = await navigator.credentials[by]({ publicKey }).catch((cause: unknown) => {
    throw refuse('The browser has not used a passkey', { ...NOT_ANSWERED, cause });
  });
  if (!credential) throw refuse('The browser has not used a passkey', NOT_ANSWERED);
  return toJson(credential);
}

interface Options {
  challenge: string;
  user: { id: string; name: string; displayName: string };
  excludeCredentials?: { id: string }[];
}

export function openPasskeys<User>({ connection, enter, pathPart, refuse }: Account<User>): Passkeys<User> {
  const send = <T>(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<T> =>
    connection.send<T>({ method, path: `/userAuth/${path}`, body, repeat: 'no' });
  const place = (id: string): string => `passkeys/${pathPart(id, 'INVALID_NAME')}`;
  const challenge = async (): Promise<object> => {
    const options = await send<Options>('POST', 'login/passkey/options');
    const publicKey = { ...options, challenge: toBytes(options.challenge), allowCredentials: [] };
    return ask(refuse, 'get', publicKey);
  };
  return {
    challenge,
    signIn: async () => enter('login/passkey', { response: await challenge() }),
    async register(name, proof) {
      const options = await send<Options>('POST', 'passkeys/options', proof);
      const publicKey = {
        ...options,
        challenge: toBytes(options.challenge),
        user: { ...options.user, id: toBytes(options.user.id) },
        excludeCredentials: (options.excludeCredentials ?? []).map(({ id }) => ({
          id: toBytes(id),
          type: 'public-key' as const,
        })),
      };
      const response = await ask(refuse, 'create', publicKey);
      return (await send<{ data: Passkey }>('POST', 'passkeys', { response, ...(name !== undefined && { name }) }))
        .data;
    },
    list: async () => (await send<{ data: { items: Passkey[] } }>('GET', 'passkeys')).data.items,
    rename: async (id, name) => (await send<{ data: Passkey }>('PATCH', place(id), { name })).data,
    remove: async (id, proof) => void (await send('DELETE', place(id), proof)),
  };
}
