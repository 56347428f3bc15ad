import { hexOf, randomToken } from '../../platform/ids.js';
import type { Tenant } from '../../fair-limiter.js';
import type { Actor } from '../../platform/actor.js';
import type { ApiKey, Project } from '../projects/project.js';

/** The content of an access token's `jti`: its session, and its time more finely than `iat` can say. */
export interface TokenId {
  /** Null for a token that no session stands behind. */
  session: string | null;
  issuedMs: number;
}

const FORM = /^([0-9a-f-]{36}|-)\.([0-9a-z]{1,11})\.[A-Za-z0-9_-]+$/;

/**
 * A fresh `jti`. `iat` counts whole seconds; a token made in the same second as a cutoff must still be distinguished
 * from one made before it.
 */
export function formatTokenId({ session, issuedMs }: TokenId): string {
  return `${session ?? '-'}.${issuedMs.toString(36)}.${randomToken(6)}`;
}

/** The parts of a `jti`, or null for text in another form. */
export function parseTokenId(text: unknown): TokenId | null {
  const match = typeof text === 'string' ? FORM.exec(text) : null;
  if (!match) return null;
  return { session: match[1] === '-' ? null : match[1]!, issuedMs: Number.parseInt(match[2]!, 36) };
}

/** 2 = with a second factor, 1 = without (accounts.md 2). */
export type Level = 1 | 2;

const SECOND_FACTORS: ReadonlySet<string> = new Set(['totp', 'recovery', 'passkey']);

/** The level of proofs, as `amr` names them. */
export function levelOf(amr: readonly string[] | undefined): Level {
  return amr?.some((method) => SECOND_FACTORS.has(method)) ? 2 : 1;
}

/** The part of a checked access token by which it is judged again, without the token. */
export interface HeldToken {
  kid: string;
  id: TokenId;
  expiresMs: number;
}

/**
 * The outcome of checking a request's bearer token. A bad one counts as absent where none is needed (decisions.md 2).
 */
export type Bearer =
  | { state: 'absent' }
  | { state: 'invalid'; code: 'TOKEN_INVALID' | 'TOKEN_EXPIRED' }
  /** Good, but the project wants a second factor, which it lacks: it may only enrol one. */
  | { state: 'invalid'; code: 'MFA_ENROLMENT_REQUIRED'; userId: string; session: string | null }
  /** `session` is the one that the token came from, if any; `level` what it rests on. */
  | { state: 'user'; userId: string; session?: string | null; level?: Level; token?: HeldToken };

/** The session of the end user's token, if there is one. */
export function sessionOf({ bearer }: Pick<Caller, 'bearer'>): string | null {
  return 'userId' in bearer ? (bearer.session ?? null) : null;
}

/** The author of a caller's writes in events: the end user, otherwise the key. */
export function actorOf({ bearer, key }: Pick<Caller, 'bearer' | 'key'>): Actor {
  return bearer.state === 'user' ? { type: 'user', id: bearer.userId } : { type: 'key', id: hexOf(key.id) };
}

/** The sender of a request: the project of its key, the key, and the end user of its bearer. */
export interface Caller {
  project: Project;
  key: ApiKey;
  bearer: Bearer;
  /** The network that a publishable key was sent from; a server is not counted by its own. */
  network?: string;
  /** The origin of the request, for own code; absent in projects without own code. */
  origin?: RequestOrigin;
}

/** What own code receives about a request besides its user. */
export interface RequestOrigin {
  ip: string;
  /** How many handlers have led to this request: one that a handler sends says 1. */
  depth: number;
  /** With which own code in a file acts as the caller. */
  credentials: { key: string; authorization: string };
}

/** Says how deep a request is in calls of own code. */
export const DEPTH_HEADER = 'bsvc-hook-depth';

/** Whose shares its replies count in. */
export function tenantOfCaller({ project, network = '' }: Pick<Caller, 'project' | 'network'>): Tenant {
  return { project: hexOf(project._id), address: network };
}
