import { ObjectId } from 'bson';
import { LRUCache } from 'lru-cache';
import { randomToken, sha256Hex } from '../../platform/ids.js';
import { KEY_PREFIX, type ApiKey, type KeyType } from './project.js';

const RANDOM_BYTES = 32;
const WELL_FORMED = /^(pk_live_|sk_live_)[A-Za-z0-9_-]{43}$/;

/** A key's name, if it is given one, has as many characters at most. */
export const MAX_KEY_NAME = 100;

/** A new key and what is stored of it. The value exists only here: it is shown once and never kept. */
export function generateKey(type: KeyType, nowMs: number, name?: string): { value: string; key: ApiKey } {
  const value = KEY_PREFIX[type] + randomToken(RANDOM_BYTES);
  return {
    value,
    key: {
      id: new ObjectId(),
      type,
      ...(name !== undefined && { name }),
      hash: hashKey(value),
      last4: value.slice(-4),
      createdAt: new Date(nowMs),
      expiresAt: null,
      revokedAt: null,
    },
  };
}

function hashKey(value: string): string {
  return sha256Hex(value);
}

/** Clients send the same few keys all the time, and each request's is asked for more than once. */
const lately = new LRUCache<string, string>({ max: 1_000 });

/** hashKey of text in the form of a key, which says nothing about its being one; null for any other. */
export function hashOfKey(text: string): string | null {
  const known = lately.get(text);
  if (known !== undefined) return known;
  if (!WELL_FORMED.test(text)) return null;
  const hash = hashKey(text);
  lately.set(text, hash);
  return hash;
}

/** A key works until it is revoked or its rotation's grace is over. */
export function isLiveKey(key: ApiKey, nowMs: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || key.expiresAt.getTime() > nowMs);
}
