import { isDeepStrictEqual } from 'node:util';
import { invalid } from '../../errors.js';
import { arrayOf, changes, FLAG, object, oneOf, orNull, text, type TypeOf } from '../../platform/schema/schema.js';
import { parseDuration } from '../../config/setting-readers.js';
import { DAY_MS } from '../../platform/time/clock.js';
import { TOKEN_ALGORITHMS, type TokenAlgorithm } from '../../platform/secrets/jwt.js';

const MAX_TEXT = 500;

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Addresses that can stand in a `Location` header as they are; a fragment would swallow the appended query. */
const PLAIN = /^[\x21\x22\x24-\x7e]*$/;

/** https anywhere; http only where nothing leaves the machine. */
export function isSafeWebAddress(text: string): boolean {
  if (!URL.canParse(text) || text.length > MAX_TEXT || !PLAIN.test(text)) return false;
  const url = new URL(text);
  if (url.username || url.password) return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.has(url.hostname));
}

/**
 * Schemes that a browser runs or opens by itself; any other that is not of the web belongs to an app, with one slash
 * (RFC 8252 7.1) or two.
 */
const OWN_SCHEME = /^(?!(?:javascript|data|file|blob|vbscript|about|https?|ftp|wss?):)[a-z][a-z0-9+.-]*:\//;

/** True if people may be sent to an address: https, http on this machine, or an app’s own scheme; no fragment. */
export function isRedirectTarget(text: string): boolean {
  return text.length <= MAX_TEXT && PLAIN.test(text) && (isSafeWebAddress(text) || OWN_SCHEME.test(text));
}

/** Sign-in with an email code: off, for existing accounts, or with sign-up of new ones. */
export const CODE_LOGINS = ['off', 'existing', 'signup'] as const;
type CodeLogin = (typeof CODE_LOGINS)[number];

/** MFA: off, optional, or required before anything else. */
export const MFA_MODES = ['off', 'optional', 'required'] as const;
type MfaMode = (typeof MFA_MODES)[number];

const MAX_REDIRECTS = 20;

const REDIRECTS = {
  ...arrayOf(text({ maxLength: 500 }), { maxItems: MAX_REDIRECTS }),
  description: 'Exact URLs of the application that emails may link to.',
};

const DELAY = text({ maxLength: 20, description: 'A duration: `24h`, `30m`, `0s`.', examples: ['24h'] });

/** Sign-in methods of a project besides passwords and providers; absent ones are off. */
export interface SignInSettings {
  codeLogin?: CodeLogin;
  redirects?: string[];
  mfa?: MfaMode;
  /** The time after which a reset of a user's factors takes effect: `24h`. */
  mfaResetDelay?: string;
  passkeys?: PasskeySite | null;
  /** Whether anonymous users can sign up. */
  anonymous?: boolean;
  /** Age after which anonymous users without a live session are deleted: `30d`. */
  anonymousKeep?: string;
  /** How access tokens are signed: with a secret of the service alone, or so that other servers can check them. */
  tokens?: TokenAlgorithm;
}

/** The site that passkeys are bound to: `rpId` is the host of each origin, or a parent of it. */
export interface PasskeySite {
  rpId: string;
  origins: string[];
}

const PASSKEYS = orNull(
  object({
    rpId: text({ maxLength: 253 }),
    origins: arrayOf(text({ maxLength: 300 }), { minItems: 1, maxItems: MAX_REDIRECTS }),
  }),
);

/** Schemas of all settings, by name. */
export const SIGN_IN_FIELDS = {
  codeLogin: oneOf(...CODE_LOGINS),
  redirects: REDIRECTS,
  mfa: oneOf(...MFA_MODES),
  mfaResetDelay: DELAY,
  passkeys: PASSKEYS,
  anonymous: FLAG,
  anonymousKeep: DELAY,
  tokens: oneOf(...TOKEN_ALGORITHMS),
};

/** The settings as they are shown, and as changes name some of them. */
export const SIGN_IN = object(SIGN_IN_FIELDS, 'SignInSettings');
export const SIGN_IN_CHANGES = changes(SIGN_IN_FIELDS);

/** A project, as far as its settings of sign-in go. */
interface ProjectWays {
  signIn?: Omit<SignInSettings, 'tokens'>;
  tokenSecrets?: readonly { algorithm?: TokenAlgorithm }[];
}

/** All settings with their defaults. */
export function signInOf({ signIn, tokenSecrets = [] }: ProjectWays): TypeOf<typeof SIGN_IN> {
  return {
    codeLogin: 'off',
    redirects: [],
    mfa: 'off',
    mfaResetDelay: '24h',
    passkeys: null,
    anonymous: false,
    anonymousKeep: '30d',
    tokens: tokenAlgorithmOf({ tokenSecrets }),
    ...signIn,
  };
}

/**
 * The changes as paths of a project's record; `tokens` is not among them, as the list of secrets holds it. 400
 * INVALID_SIGN_IN for an address that no mail may link to.
 */
export function readSignInChanges({ tokens: _, ...changes }: SignInSettings): Record<string, unknown> {
  const bad = changes.redirects?.find((address) => !isRedirectTarget(address));
  if (bad !== undefined || (changes.redirects?.length ?? 0) > MAX_REDIRECTS) {
    const place = bad === undefined ? `more than ${MAX_REDIRECTS} addresses` : `"${bad.slice(0, 100)}"`;
    throw invalid(
      'INVALID_SIGN_IN',
      `Mails cannot link to ${place}: use https, http on this machine, or an app’s own scheme, without #`,
    );
  }
  if (changes.mfaResetDelay !== undefined) requireDuration('mfaResetDelay', changes.mfaResetDelay);
  if (changes.anonymousKeep !== undefined) requireDuration('anonymousKeep', changes.anonymousKeep);
  if (changes.passkeys) requireSite(changes.passkeys);
  return Object.fromEntries(
    Object.entries(changes)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [`signIn.${name}`, value]),
  );
}

const HOST = /^(localhost|([a-z0-9-]+\.)+[a-z0-9-]+)$/;

function requireSite({ rpId, origins }: PasskeySite): void {
  if (!HOST.test(rpId)) throw invalid('INVALID_SIGN_IN', `"${rpId}" is no host that passkeys can be bound to`);
  for (const origin of origins) {
    const url = isSafeWebAddress(origin) ? new URL(origin) : null;
    if (url?.origin !== origin) {
      throw invalid('INVALID_SIGN_IN', `"${origin}" is no origin: use https://app.example.com, or http://localhost`);
    }
    if (url.hostname !== rpId && !url.hostname.endsWith(`.${rpId}`)) {
      throw invalid('INVALID_SIGN_IN', `${rpId} must be the host of ${origin}, or a parent of it`);
    }
  }
}

const MAX_DELAY_MS = 30 * DAY_MS;

function requireDuration(name: string, value: string): void {
  let ms = Number.NaN;
  try {
    ms = parseDuration(value);
  } catch {
    // Told below.
  }
  if (!(ms <= MAX_DELAY_MS)) throw invalid('INVALID_SIGN_IN', `${name} must be a duration of at most 30d, as 24h`);
}

/** One setting that differs from what is wanted. */
interface SignInChange {
  changes: SignInSettings;
  /** In a line. */
  said: string;
  /** It grants more access. */
  isLoosening: boolean;
}

type Comparison<T> = [present: T, wanted: T];

/** The settings that differ from those that are wanted. */
export function compareSignIn(project: ProjectWays, wanted: SignInSettings): SignInChange[] {
  const present = signInOf(project);
  const compare = <N extends keyof typeof present>(
    name: N,
    label: string,
    isLoosening: (...both: Comparison<(typeof present)[N]>) => boolean,
  ): SignInChange[] => {
    const next = wanted[name] as (typeof present)[N] | undefined;
    if (next === undefined || isDeepStrictEqual(next, present[name])) return [];
    const show = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
    const said = `${label}: ${show(present[name])} -> ${show(next)}`;
    return [{ changes: { [name]: next }, said, isLoosening: isLoosening(present[name], next) }];
  };
  return [
    ...compare('codeLogin', 'sign-in by code', (before, after) => rank(after) > rank(before)),
    ...compare('mfa', 'second factors', (before, after) => before === 'required' && after !== before),
    ...compare(
      'mfaResetDelay',
      'delay of a reset of factors',
      (before, after) => parseDuration(after) < parseDuration(before),
    ),
    ...compare('passkeys', 'passkeys', (_before, after) => after !== null),
    ...compare('anonymous', 'anonymous users', (_before, after) => after),
    ...compare('anonymousKeep', 'anonymous users are kept', () => false),
    ...compare('tokens', 'access tokens', () => false),
    ...compare('redirects', 'addresses in mails', (before, after) => after.some((url) => !before.includes(url))),
  ];
}

const rank = (login: CodeLogin): number => CODE_LOGINS.indexOf(login);

/** A token secret, as far as its algorithm goes; absent = HS256. */
interface WithAlgorithm {
  algorithm?: TokenAlgorithm;
}

/** The algorithm that new access tokens of a project are signed with: its newest secret's. */
export function tokenAlgorithmOf({ tokenSecrets }: { tokenSecrets: readonly WithAlgorithm[] }): TokenAlgorithm {
  return tokenSecrets.at(-1)?.algorithm ?? 'HS256';
}
