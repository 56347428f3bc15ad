import type { Context } from 'koa';
import type { App } from '../../app.js';
import { findTokenKid, isOfNow, verifyToken, type TokenClaims } from '../../platform/secrets/jwt.js';
import type { Project } from '../projects/project.js';
import { findTokenKey } from '../projects/token-secret.js';
import { type Bearer, type HeldToken, levelOf, parseTokenId } from './caller.js';
import { endsToken, peekCutoffs, readCutoffs } from './token-cutoff.js';
import { cacheRegion } from '../../platform/cache.js';

const MAX_TOKEN_CHARACTERS = 4096;
const ABSENT: Bearer = { state: 'absent' };
const INVALID: Bearer = { state: 'invalid', code: 'TOKEN_INVALID' };

/** The end user that an `Authorization` header names. A bad token never throws: the rule that needs one decides. */
export async function readBearer(app: App, project: Project, header: string): Promise<Bearer> {
  return peekBearer(app, project, header) ?? peekBearer(app, project, header, await readCutoffs(app, project._id))!;
}

/** readBearer with what is known already; undefined where the project's cutoffs have to be read for it. */
export function peekBearer(
  app: App,
  project: Project,
  header: string,
  cutoffs = peekCutoffs(app, project._id),
): Bearer | undefined {
  if (header === '') return ABSENT;
  const token = /^Bearer ([^\s]+)$/i.exec(header)?.[1];
  if (!token || token.length > MAX_TOKEN_CHARACTERS) return INVALID;
  const claims = readClaims(app, project, token);
  if (typeof claims === 'string') return { state: 'invalid', code: claims };
  if (claims.projectId !== project._id.toHexString() || claims.userId !== claims.sub) return INVALID;
  const id = parseTokenId(claims.jti);
  if (!id) return INVALID;
  const { kid, userId } = claims;
  const { session } = id;
  const level = levelOf(claims.amr);
  const user: Bearer =
    level === 1 && project.signIn?.mfa === 'required'
      ? { state: 'invalid', code: 'MFA_ENROLMENT_REQUIRED', userId, session }
      : { state: 'user', userId, session, level, token: { kid, id, expiresMs: claims.exp * 1000 } };
  if (!cutoffs) return undefined;
  return endsToken(cutoffs, userId, id) ? INVALID : user;
}

interface ReadAhead {
  project: Project;
  bearer: Bearer;
}

/** Keeps a bearer that was read before its guard reads it, who then takes it (`takeBearer`). */
export function keepBearer({ state }: Context, project: Project, bearer: Bearer): Bearer {
  state.bearer = { project, bearer } satisfies ReadAhead;
  return bearer;
}

/** The bearer that was read ahead, once; peeked at now when none was, or when a long request is judged again. */
export function takeBearer(app: App, ctx: Context, project: Project): Bearer | undefined {
  const ahead = ctx.state.bearer as ReadAhead | undefined;
  ctx.state.bearer = undefined;
  return ahead?.project === project ? ahead.bearer : peekBearer(app, project, ctx.get('authorization'));
}

/** A token whose signature has been checked a moment ago. */
interface Verified {
  kid: string;
  claims: TokenClaims & { kid: string };
}

/** By the token. */
export const VERIFIED_TOKENS = cacheRegion<Verified>('verified-tokens');

/**
 * Checking a signature costs as much as reading ten documents, so a token's is checked once in half a second; its time
 * and its secret's every time.
 */
function readClaims(
  app: App,
  project: Project,
  token: string,
): (TokenClaims & { kid: string }) | 'TOKEN_INVALID' | 'TOKEN_EXPIRED' {
  const now = app.clock.now();
  const known = app.cache.peek(VERIFIED_TOKENS, token);
  const kid = known ? known.kid : findTokenKid(token);
  const key = kid === null ? null : findTokenKey(app, project, kid);
  if (kid === null || !key) return 'TOKEN_INVALID';
  if (known) return isOfNow(known.claims, now) ? known.claims : 'TOKEN_EXPIRED';
  const verified = verifyToken(token, key, now);
  if (typeof verified === 'string') return verified;
  const claims = { ...verified, kid };
  app.cache.keep(VERIFIED_TOKENS, token, { kid, claims });
  return claims;
}

/** The signature of the request's token was checked a moment ago: reading it costs next to nothing. */
export function isVerifiedAlready(app: App, ctx: Context): boolean {
  return app.cache.peek(VERIFIED_TOKENS, ctx.get('authorization').slice('Bearer '.length)) !== undefined;
}

/** The fault that a once good token has by now; null while it is good. */
export async function judgeHeldToken(
  app: App,
  project: Project,
  userId: string,
  { kid, id, expiresMs }: HeldToken,
): Promise<TokenProblem | null> {
  if (app.clock.now() >= expiresMs) return 'TOKEN_EXPIRED';
  if (!findTokenKey(app, project, kid)) return 'TOKEN_INVALID';
  return endsToken(await readCutoffs(app, project._id), userId, id) ? 'TOKEN_INVALID' : null;
}

type TokenProblem = 'TOKEN_INVALID' | 'TOKEN_EXPIRED';
