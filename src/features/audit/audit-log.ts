import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { AppError } from '../../errors.js';
import { storeOf } from '../../platform/database/database.js';
import { findOutage } from '../../platform/database/outages.js';
import { sha256Hex } from '../../platform/ids.js';
import { MASK, maskAddress, maskCredentials } from '../../platform/secrets/mask-address.js';

/** An administrative act as recorded: who did what with which words, and how it ended. Never a secret. */
export interface AuditEntry {
  _id: ObjectId;
  at: Date;
  /** `ada@host` for the command line, the operator's address for the HTTP API. */
  actor: string;
  /** The words of the command, for example `project update`; the HTTP API uses the same ones. */
  action: string;
  /** Arguments and options by name, without secrets. */
  input: Record<string, unknown>;
  /** `started` stays only when the process died before the end. */
  outcome: 'started' | 'done' | 'failed';
  /** Code of the error of a failed act. */
  code: string | null;
  /** For actions over HTTP: the request id of the response and the access log. */
  requestId?: string;
}

export type NewAuditEntry = Pick<AuditEntry, 'actor' | 'action' | 'input' | 'requestId'>;

export const AUDIT_LOG = 'audit_log';

export const MAX_AUDITED_CHARACTERS = 500;
const MAX_ITEMS = 50;

const auditStore = storeOf<AuditEntry>(AUDIT_LOG);

/** Records an act before it is carried out, so that one that dies in the middle leaves a trace. */
export async function startAuditEntry(
  app: App,
  { actor, action, input, requestId }: NewAuditEntry,
): Promise<AuditEntry> {
  const act: AuditEntry = {
    _id: new ObjectId(),
    at: new Date(app.clock.now()),
    actor,
    action,
    input: shorten(input),
    outcome: 'started',
    code: null,
    ...(requestId !== undefined && { requestId }),
  };
  // Acts that make room on a full disk are recorded too.
  await app.db.useReserve(() => auditStore(app).insertOne(act));
  return act;
}

/**
 * Notes how an act ended and with which input in the end; `code` is the error's, null for success. Written whole, as a
 * restore replaces the log.
 */
export async function finishAuditEntry(
  app: App,
  act: AuditEntry,
  end: { code: string | null; input: AuditEntry['input'] },
): Promise<void> {
  const { _id, ...begun } = act;
  const outcome = end.code === null ? 'done' : 'failed';
  const ended = { ...begun, outcome, code: end.code, input: shorten(end.input) } as const;
  await auditStore(app).replaceOne({ _id }, ended, { upsert: true });
}

/**
 * Carries out `work` and records it as an act: before it begins, and how it ended. An end that cannot be recorded is
 * logged and does not undo the work's answer.
 */
export async function withAuditEntry<T>(app: App, act: NewAuditEntry, work: () => Promise<T>): Promise<T> {
  const begun = await startAuditEntry(app, act);
  let code: string | null = null;
  try {
    return await work();
  } catch (error) {
    code = error instanceof AppError ? error.code : (findOutage(error)?.code ?? 'INTERNAL');
    throw error;
  } finally {
    await finishAuditEntry(app, begun, { code, input: act.input }).catch((error: unknown) =>
      app.log.error({ err: error, action: act.action }, 'the end of an act could not be recorded'),
    );
  }
}

export interface AuditQuery {
  limit: number;
  /** Milliseconds since 1970. */
  since?: number;
  /** The words of a command or the first of them: `key` is also `key create`. */
  action?: string;
  actor?: string;
  /** Any name of one project. */
  about?: readonly string[];
  /** The entry after which to go on. */
  before?: ObjectId;
}

/** The newest acts first. One page after the other meets each once, but those that are recorded between two pages. */
export async function listActs(
  app: App,
  { limit, since, action, actor, about, before }: AuditQuery,
): Promise<AuditEntry[]> {
  const from = before && (await auditStore(app).findOne({ _id: before }));
  if (before && !from) return [];
  const filter = {
    ...(since !== undefined && { at: { $gte: new Date(since) } }),
    ...(action !== undefined && { $and: [{ $or: [{ action }, { action: beginningWith(`${action} `) }] }] }),
    ...(actor !== undefined && { actor }),
    ...(about !== undefined && { 'input.project': { $in: [...about] } }),
    ...(from && { $or: [{ at: { $lt: from.at } }, { at: from.at, _id: { $lt: from._id } }] }),
  };
  return auditStore(app).find(filter).sort({ at: -1, _id: -1 }).limit(limit).toArray();
}

function beginningWith(text: string): { $gte: string; $lt: string } {
  return { $gte: text, $lt: `${text}\uffff` };
}

/** An audit entry as HTTP and command line show it. */
export function presentAct({ _id, at, ...act }: AuditEntry) {
  return { id: _id.toHexString(), at: at.toISOString(), ...act };
}

const SECRET_NAME = /passw|secret|token|api_?key|authorization|^headers?$/i;
/**
 * Keys that a database reads as something else: operators, paths, prototypes, and the key by which the driver knows its
 * own types.
 */
const MISREAD = /^\$|^__proto__$|^_bsontype$|[.\0]/g;
const MAX_LEVELS = 6;
export const MAX_AUDITED_VALUES = 300;
const MAX_NAME = 100;

/**
 * The input in a form that is small and safe to store: long texts and lists are cut and say what is missing, secrets
 * are masked by their names, and names that a database would misread are changed.
 */
function shorten(input: Record<string, unknown>): Record<string, unknown> {
  let left = MAX_AUDITED_VALUES;
  const shortenValue = (value: unknown, level: number): unknown => {
    left -= 1;
    if (left < 0 || level > MAX_LEVELS) return describeCut(value);
    if (typeof value === 'string') return shortenText(value);
    if (Array.isArray(value)) {
      const kept = value.slice(0, MAX_ITEMS).map((item) => shortenValue(item, level + 1));
      return value.length > MAX_ITEMS ? [...kept, describeCut(value.slice(MAX_ITEMS))] : kept;
    }
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value);
    const kept = entries
      .slice(0, MAX_ITEMS)
      .map(([name, inner]): [string, unknown] => [
        name.slice(0, MAX_NAME).replace(MISREAD, '_'),
        SECRET_NAME.test(name) && mayReveal(inner)
          ? MASK
          : shortenValue(name === 'url' ? maskReceiver(inner) : inner, level + 1),
      ]);
    const cut = entries.slice(MAX_ITEMS);
    return Object.fromEntries(cut.length > 0 ? [...kept, ['…', describeCut(Object.fromEntries(cut))]] : kept);
  };
  return shortenValue(input, 1) as Record<string, unknown>;
}

function maskReceiver(value: unknown): unknown {
  return typeof value === 'string' && URL.canParse(value) ? maskAddress(value) : value;
}

function shortenText(given: string): string {
  const text = maskCredentials(given);
  return text.length > MAX_AUDITED_CHARACTERS
    ? `${text.slice(0, MAX_AUDITED_CHARACTERS)}${describeCut(text.slice(MAX_AUDITED_CHARACTERS))}`
    : text;
}

/**
 * A description of a part left out of an entry, so that nothing can hide behind it: its size, and the SHA-256 of its
 * JSON with secrets masked by name.
 */
function describeCut(value: unknown): string {
  if (typeof value !== 'object' && typeof value !== 'string') return '…';
  const json = JSON.stringify(value, (name, inner: unknown) =>
    SECRET_NAME.test(name) && mayReveal(inner) ? MASK : inner,
  );
  const size = typeof value === 'string' ? value.length : Object.keys(value ?? {}).length;
  return `… ${size} more (sha256 ${sha256Hex(json)})`;
}

/**
 * True if a value sent in the place of a secret may be one in another form, such as digits without quotation marks;
 * null, true and false are not.
 */
function mayReveal(value: unknown): boolean {
  return value !== null && value !== undefined && typeof value !== 'boolean';
}
