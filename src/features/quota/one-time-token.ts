import { EJSON, type ObjectId } from 'bson';
import type { App } from '../../app.js';
import { unlessDuplicate, type Transaction, storeOf } from '../../platform/database/database.js';
import { randomToken, sha256Hex } from '../../platform/ids.js';
import { isToCome } from '../../platform/time/clock.js';
import { insertServiceRecord } from './insert-service-record.js';

export const ONE_TIME_TOKENS = 'one_time_tokens';

const MAX_TRIES = 5;

/** A started step that a one-time token continues. */
interface OneTimeToken {
  /** SHA-256 of the token. */
  _id: string;
  purpose: string;
  projectId: ObjectId;
  /** What the step rests on, as extended JSON, encrypted. */
  encrypted: string;
  tries: number;
  expiresAt: Date;
  updatedAt: Date;
}

/** A token that was presented, and is good. */
export interface GoodToken<H> {
  projectId: ObjectId;
  held: H;
  /** Uses it up in a transaction; false where another one did so first. */
  readonly use: (tx: Transaction) => boolean;
}

type Accepts<H> = (held: H) => boolean;

/**
 * The tokens of one purpose, of a project or (null) of any. Of what one holds `accepts` may demand more; one that it
 * refuses stays.
 */
export interface OneTimeTokens<H> {
  /** Keeps what a step rests on and answers the token for it. */
  give(app: App, project: Owner, held: H, token?: string): Promise<string>;
  /** Null for a token that is unknown, used or too old. */
  find(app: App, project: Owner | null, token: string, accepts?: Accepts<H>): Promise<GoodToken<H> | null>;
  /** The same for one that is used up by it. */
  take(app: App, project: Owner | null, token: string, accepts?: Accepts<H>): Promise<GoodToken<H> | null>;
  /** The same for one that may be tried five times: this is a try. */
  meet(app: App, project: Owner | null, token: string): Promise<GoodToken<H> | null>;
}

interface Owner {
  readonly _id: ObjectId;
}

const tokenStore = storeOf<OneTimeToken>(ONE_TIME_TOKENS);

/** Declares a purpose, and how long its tokens are good. */
export function oneTimeTokens<H extends object>(purpose: string, lifetimeMs: number): OneTimeTokens<H> {
  const read = (app: App, project: Owner | null, stored: object | null, accepts?: Accepts<H>): GoodToken<H> | null => {
    const known = stored as OneTimeToken | null;
    if (known?.purpose !== purpose || !isToCome(known.expiresAt.getTime(), lifetimeMs, app.clock.now())) return null;
    const { _id, projectId, encrypted } = known;
    if (project && !projectId.equals(project._id)) return null;
    const held = EJSON.parse(app.secrets.decrypt(encrypted, encryptionContext(_id))) as H;
    if (accepts && !accepts(held)) return null;
    return { projectId, held, use: (tx) => useUp(tx, _id) };
  };
  return {
    async give(app, { _id: projectId }, held, token = randomToken(32)) {
      const now = new Date(app.clock.now());
      const _id = sha256Hex(token);
      await keepToken(app, {
        ...{ _id, purpose, projectId, tries: 0, updatedAt: now },
        encrypted: app.secrets.encrypt(EJSON.stringify(held), encryptionContext(_id)),
        expiresAt: new Date(now.getTime() + lifetimeMs),
      });
      return token;
    },
    async find(app, project, token, accepts) {
      return read(app, project, await tokenStore(app).findOne({ _id: sha256Hex(token) }), accepts);
    },
    async take(app, project, token, accepts) {
      let found: GoodToken<H> | null = null;
      await app.db.transform(ONE_TIME_TOKENS, sha256Hex(token), (stored) => {
        found = read(app, project, stored, accepts);
        return found ? null : stored;
      });
      return found;
    },
    async meet(app, project, token) {
      let found: GoodToken<H> | null = null;
      await app.db.transform(ONE_TIME_TOKENS, sha256Hex(token), (stored) => {
        const { tries = MAX_TRIES, updatedAt } = (stored ?? {}) as Partial<OneTimeToken>;
        found = tries < MAX_TRIES ? read(app, project, stored, undefined) : null;
        if (!found) return stored;
        const later = new Date(Math.max(app.clock.now(), updatedAt!.getTime() + 1));
        return { ...stored, tries: tries + 1, updatedAt: later };
      });
      return found;
    },
  };
}

function useUp(tx: Transaction, id: string): boolean {
  if (!tx.get(ONE_TIME_TOKENS, id)) return false;
  tx.remove(ONE_TIME_TOKENS, id);
  return true;
}

const keepToken = (app: App, token: OneTimeToken): Promise<true> => insertServiceRecord(app, 'oneTimeTokens', token);

/** Records the use of a token of another issuer, by its id; false if it was used before. */
export async function noteUsed(app: App, projectId: ObjectId, _id: string, expiresAt: Date): Promise<boolean> {
  const used = { _id, purpose: 'used', projectId, encrypted: '', tries: 0, expiresAt, updatedAt: expiresAt };
  return (await unlessDuplicate(keepToken(app, used))) !== null;
}

const encryptionContext = (id: string): string => `one-time-token:${id}`;
