import type { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { storeOf } from '../../platform/database/database.js';
import { randomToken, sha256Hex } from '../../platform/ids.js';
import { cacheRegion } from '../../platform/cache.js';

export const OPERATOR_ROLES = ['owner', 'viewer'] as const;
/** `owner` may change everything it sees, `viewer` only looks. */
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** A user of the console who administers projects; not an end user. */
export interface Operator {
  _id: ObjectId;
  /** Trimmed and lower-cased; unique. */
  email: string;
  role: OperatorRole;
  /** The projects it sees; null = all, and new ones may be created. */
  projects: ObjectId[] | null;
  passwordHash: string;
  createdAt: Date;
  /** Views of collections, under names of one's own. */
  views?: SavedView[];
}

export interface SavedView {
  /** Made of project, collection and name: there is one of each. */
  id: string;
  projectId: string;
  collection: string;
  name: string;
  /** Of the console's address. */
  query: string;
}

/** Only shown to the owner. */
export const WITHOUT_VIEWS = { projection: { views: 0 } };

/** A token that was given out. It works until it expires, is signed out, or its operator is removed. */
export interface OperatorSession {
  /** SHA-256 of the token. */
  _id: string;
  operatorId: ObjectId;
  createdAt: Date;
  expiresAt: Date;
  /** Opened by the console, whose cookie carries the token; absent = for a header alone. */
  isConsole?: true;
  /** No session: its text signs in once, by any sender. */
  isLink?: true;
  /** Of the console: about when the last request came. */
  usedAt?: Date;
  /** Of the console: when its operator last gave the password again. */
  confirmedAt?: Date;
}

/** Time without a request after which a session of the console ends. */
const IDLE_MS = 3_600_000;
/** Every how often its use is noted. */
const NOTE_USE_MS = 60_000;

export function isIdle({ usedAt }: OperatorSession, nowMs: number): boolean {
  return usedAt !== undefined && nowMs - usedAt.getTime() >= IDLE_MS;
}

/** Notes the use of a session of the console, at most once a minute, in the background. */
export function noteUse(app: App, { _id, usedAt }: OperatorSession): void {
  const nowMs = app.clock.now();
  if (usedAt === undefined || nowMs - usedAt.getTime() < NOTE_USE_MS) return;
  app.backgroundTasks.add('operator-use', _id, async (ids) => {
    await operatorSessionStore(app).updateMany({ _id: { $in: ids } }, { $set: { usedAt: new Date(nowMs) } });
  });
}

export const OPERATORS = 'operators';
export const OPERATOR_SESSIONS = 'operator_sessions';

export const operatorStore = storeOf<Operator>(OPERATORS);

export const operatorSessionStore = storeOf<OperatorSession>(OPERATOR_SESSIONS);

const TOKEN_PREFIX = 'bsvc_op_';
const TOKEN_BYTES = 32;
const TOKEN_FORM = /^bsvc_op_[A-Za-z0-9_-]{43}$/;

/** A new bearer token; only its hash is ever stored. */
export function generateOperatorToken(): string {
  return TOKEN_PREFIX + randomToken(TOKEN_BYTES);
}

/** True for text in the form of an operator's token; says nothing about its being one. */
export function isOperatorTokenForm(text: string): boolean {
  return TOKEN_FORM.test(text);
}

export function hashOperatorToken(token: string): string {
  return sha256Hex(token);
}

export interface SignedInOperator {
  operator: Operator;
  session: OperatorSession;
}

/** Operators by the hash of their token. */
export const SIGNED_IN_OPERATORS = cacheRegion<SignedInOperator>('operators');

/** The operator of a token, at most half a second old; null if it is unknown, signed out or of a removed operator. */
export function findSignedIn(app: App, token: string): Promise<SignedInOperator | null> {
  const hash = hashOperatorToken(token);
  return app.cache.read(SIGNED_IN_OPERATORS, hash, async () => {
    const session = await operatorSessionStore(app).findOne({ _id: hash }, app.db.confirmedReads);
    const operator = session && (await operatorStore(app).findOne({ _id: session.operatorId }, WITHOUT_VIEWS));
    return session && operator ? { operator, session } : null;
  });
}

/** Drops this process's copies of operators. */
export function forgetOperators(app: Pick<App, 'cache'>): void {
  app.cache.forgetAll(SIGNED_IN_OPERATORS);
}
