import type { App } from '../../app.js';
import { conflict, invalid, missing } from '../../errors.js';
import { generateKey, isLiveKey, MAX_KEY_NAME, type ApiKey, type KeyType, type Project } from './project.js';
import { changeProjectList } from './project-store.js';

const MAX_LIVE_KEYS = 50;
/** Dead keys are shown for a while, then forgotten, so that a project's record stays small. */
const KEPT_DEAD_KEYS = 50;

export interface NewKey {
  key: ApiKey;
  /** Shown once, stored nowhere. */
  value: string;
}

/** Adds a live key; 400 INVALID_NAME for a name that is no line of text, 409 KEY_LIMIT at 50 live ones. */
export async function createKey(app: App, project: Project, type: KeyType, name?: string): Promise<NewKey> {
  if (name !== undefined) requireKeyName(name);
  const { key, value } = generateKey(type, app.clock.now(), name);
  await changeKeys(app, project, (keys, nowMs) => {
    requireRoom(keys, nowMs);
    return [...keys, key];
  });
  return { key, value };
}

/** Adds a key and lets all other live ones of its type end after `graceMs` (0 = at once), by one write. */
export async function rotateKey(app: App, project: Project, type: KeyType, graceMs: number): Promise<NewKey> {
  const { key, value } = generateKey(type, app.clock.now());
  await changeKeys(app, project, (keys, nowMs) => {
    requireRoom(keys, nowMs);
    const end = new Date(nowMs + graceMs);
    const ended = keys.map((old) =>
      old.type === type && isLiveKey(old, nowMs) && (old.expiresAt === null || old.expiresAt > end)
        ? { ...old, expiresAt: end }
        : old,
    );
    return [...ended, key];
  });
  return { key, value };
}

/** Ends a key at once; other processes refuse it within a second. 404 for an unknown id; revoking twice is harmless. */
export async function revokeKey(app: App, project: Project, keyId: string): Promise<ApiKey> {
  const keys = await changeKeys(app, project, (current, nowMs) => {
    if (!current.some((key) => key.id.toHexString() === keyId)) {
      throw missing('KEY_NOT_FOUND', `The project has no key ${keyId}`);
    }
    return current.map((key) =>
      key.id.toHexString() === keyId && key.revokedAt === null ? { ...key, revokedAt: new Date(nowMs) } : key,
    );
  });
  return keys.find((key) => key.id.toHexString() === keyId)!;
}

function requireKeyName(name: string): void {
  if (name.trim() !== '' && name.length <= MAX_KEY_NAME && !/\p{C}/u.test(name)) return;
  throw invalid('INVALID_NAME', `The name of a key has 1 to ${MAX_KEY_NAME} characters, in one line`);
}

function requireRoom(keys: ApiKey[], nowMs: number): void {
  if (keys.filter((key) => isLiveKey(key, nowMs)).length >= MAX_LIVE_KEYS) {
    throw conflict('KEY_LIMIT', `A project has at most ${MAX_LIVE_KEYS} live keys: revoke one first`);
  }
}

async function changeKeys(
  app: App,
  project: Project,
  change: (keys: ApiKey[], nowMs: number) => ApiKey[],
): Promise<ApiKey[]> {
  const changed = await changeProjectList(app, project, 'keys', (keys, nowMs) =>
    forgetOldDead(change(keys, nowMs), nowMs),
  );
  return changed.keys;
}

function forgetOldDead(keys: ApiKey[], nowMs: number): ApiKey[] {
  const dead = keys.filter((key) => !isLiveKey(key, nowMs));
  const forgotten = new Set(dead.slice(0, Math.max(0, dead.length - KEPT_DEAD_KEYS)));
  return keys.filter((key) => !forgotten.has(key));
}
