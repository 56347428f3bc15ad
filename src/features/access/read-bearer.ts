import type { Context } from 'koa';
import type { App } from '../../app.js';
import { findTokenKid, isOfNow, verifyToken, type TokenClaims } from '../../platform/secrets/jwt.js';
import type { Project } from '../projects/project.js';
import { findTokenKey } from '../projects/token-secret.js';
import { type Bearer, type HeldToken, levelOf, parseTokenId } from './caller.js';
import { isCutOff } from './token-cutoff.js';
import { cacheRegion } from '../../platform/cache.js';

const MAX_TOKEN_CHARACTERS = 4096;
const ABSENT: Bearer = { state: 'absent' };
const INVALID: Bearer = { state: 'invalid', code: 'TOKEN_INVALID' };

/** The end user that an `Authorization` header names. A bad token never throws: the rule that needs one decides. */
export function readBearer(app: App, project: Project, header: string): Bearer | Promise<Bearer> {
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
  const cutOff = isCutOff(app, project._id, claims.userId, id);
  if (cutOff instanceof Promise) return cutOff.then((ended) => (ended ? INVALID : user));
  return cutOff ? INVALID : user;
}

interface ReadAhead {
  project: Project;
  bearer: Bearer;
}

/** Reads a request's bearer before its guard does, who then takes what was read (`takeBearer`). */
export function readBearerAhead(app: App, ctx: Context, project: Project): Bearer | Promise<Bearer> {
  const keep = (bearer: Bearer): Bearer => {
    ctx.state.bearer = { project, bearer } satisfies ReadAhead;
    return bearer;
  };
  const bearer = readBearer(app, project, ctx.get('authorization'));
  return bearer instanceof Promise ? bearer.then(keep) : keep(bearer);
}

/** The bearer that was read ahead, once; read now when it was not, or when a long request is judged again. */
export function takeBearer(app: App, ctx: Context, project: Project): Bearer | Promise<Bearer> {
  const ahead = ctx.state.bearer as ReadAhead | undefined;
  ctx.state.bearer = undefined;
  return ahead?.project === project ? ahead.bearer : readBearer(app, project, ctx.get('authorization'));
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

/** The fault that a once good token has by now; null while it is good. A promise only when it takes time. */
export function judgeHeldToken(
  app: App,
  project: Project,
  userId: string,
  { kid, id, expiresMs }: HeldToken,
): TokenProblem | null | Promise<TokenProblem | null> {
  if (app.clock.now() >= expiresMs) return 'TOKEN_EXPIRED';
  if (!findTokenKey(app, project, kid)) return 'TOKEN_INVALID';
  const cutOff = isCutOff(app, project._id, userId, id);
  if (cutOff instanceof Promise) return cutOff.then((ended) => (ended ? 'TOKEN_INVALID' : null));
  return cutOff ? 'TOKEN_INVALID' : null;
}

type TokenProblem = 'TOKEN_INVALID' | 'TOKEN_EXPIRED';
