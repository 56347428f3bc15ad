import { ObjectId } from 'bson';
import { hexOf } from '../../platform/ids.js';
import type { App } from '../../app.js';
import { CLOCKS_DIFFER_MS } from '../../platform/time/clock.js';
import { groupBy } from '../../platform/group-by.js';
import { type WriteTurn, storeOf } from '../../platform/database/database.js';
import type { TokenId } from './caller.js';
import { cacheRegion } from '../../platform/cache.js';

export const TOKEN_CUTOFFS = 'token_cutoffs';

/**
 * Ends access tokens of one end user before their time. Kept only as long as a token can live, so that a project's list
 * stays short.
 */
export interface TokenCutoff {
  _id: ObjectId;
  projectId: ObjectId;
  userId: string;
  /** All tokens of this session are refused; null = those of every session. */
  session: string | null;
  /** Tokens issued at this moment or before are refused. */
  before: Date | null;
  /** Tokens of this session go on working: the one in which a password was changed. */
  exceptSession: string | null;
  expiresAt: Date;
}

/** The cutoffs of a project by user. */
export interface Cutoffs {
  byUser: Map<string, TokenCutoff[]>;
}

/** By the id of their project. */
export const CUTOFFS = cacheRegion<Cutoffs>('token-cutoffs');

/** Which tokens of a user end: those of a session that is over, or all up to a moment, of every session but one. */
export type CutoffScope = { session: string } | { before: Date; exceptSession?: string | null };

const cutoffStore = storeOf<TokenCutoff>(TOKEN_CUTOFFS);

/** Ends access tokens of a user: here at once, in other processes within a second. Repeating it is harmless. */
export async function cutOffTokens(app: App, projectId: ObjectId, userId: ObjectId, scope: CutoffScope): Promise<void> {
  await cutoffStore(app).insertOne(newCutoff(app, projectId, userId, scope));
  forgetCutoffs(app, projectId);
}

/** The same by the transaction of the write that ends them; forgetCutoffs is to be called then. */
export function cutoffTurn(app: App, projectId: ObjectId, userId: ObjectId, scope: CutoffScope): WriteTurn {
  const cutoff = newCutoff(app, projectId, userId, scope);
  return { collection: TOKEN_CUTOFFS, id: cutoff._id, run: (stored) => stored ?? { ...cutoff } };
}

export function forgetCutoffs(app: App, projectId: ObjectId): void {
  app.cache.forget(CUTOFFS, hexOf(projectId));
}

function newCutoff(app: App, projectId: ObjectId, userId: ObjectId, scope: CutoffScope): TokenCutoff {
  return {
    _id: new ObjectId(),
    projectId,
    userId: userId.toHexString(),
    session: null,
    before: null,
    exceptSession: null,
    ...scope,
    // Other processes may have signed by a clock that is ahead of ours.
    expiresAt: new Date(app.clock.now() + app.config.accessTokenTtlMs + CLOCKS_DIFFER_MS),
  };
}

/** The cutoffs of a project from this process's copies alone; undefined when they lack them. */
export function peekCutoffs(app: App, projectId: ObjectId): Cutoffs | undefined {
  return app.cache.peek(CUTOFFS, hexOf(projectId));
}

/** One short query per project and half second answers for all its users; a request costs a map look-up. */
export async function readCutoffs(app: App, projectId: ObjectId): Promise<Cutoffs> {
  return (await app.cache.read(CUTOFFS, hexOf(projectId), () => loadCutoffs(app, projectId)))!;
}

/** True if a well-signed token has been ended. */
export function endsToken({ byUser }: Cutoffs, userId: string, token: TokenId): boolean {
  const own = byUser.get(userId);
  if (!own) return false;
  return own.some(({ session, before, exceptSession }) =>
    before === null
      ? session === token.session
      : token.issuedMs <= before.getTime() && (exceptSession === null || exceptSession !== token.session),
  );
}

async function loadCutoffs(app: App, projectId: ObjectId): Promise<Cutoffs> {
  const live = { projectId, expiresAt: { $gt: new Date(app.clock.now()) } };
  const cutoffs = await cutoffStore(app).find(live, app.db.confirmedReads).toArray();
  return { byUser: groupBy(cutoffs, ({ userId }) => userId) };
}
