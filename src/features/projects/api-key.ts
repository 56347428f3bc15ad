import { ObjectId } from 'bson';
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

export function hashKey(value: string): string {
  return sha256Hex(value);
}

/** True for text in the form of a key; says nothing about its being one. */
export function isKeyForm(text: string): boolean {
  return WELL_FORMED.test(text);
}

/** A key works until it is revoked or its rotation's grace is over. */
export function isLiveKey(key: ApiKey, nowMs: number): boolean {
  return key.revokedAt === null && (key.expiresAt === null || key.expiresAt.getTime() > nowMs);
}
