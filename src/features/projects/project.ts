import { ObjectId } from 'bson';
import type { TokenAlgorithm } from '../../platform/secrets/jwt.js';
import type { SignInSettings } from './sign-in-settings.js';
import { LRUCache } from 'lru-cache';
import { randomToken, sha256Hex } from '../../platform/ids.js';

export const KEY_TYPES = ['publishable', 'secret'] as const;
export type KeyType = (typeof KEY_TYPES)[number];
export const KEY_PREFIX: Record<KeyType, string> = { publishable: 'pk_live_', secret: 'sk_live_' };

export const PLAN_NAMES = ['free', 'pro'] as const;
export type PlanName = (typeof PLAN_NAMES)[number];

/**
 * An API key as stored inside its project's record, so that project and first keys are created by one write. Only the
 * hash of the key is kept.
 */
export interface ApiKey {
  id: ObjectId;
  type: KeyType;
  /** The name that people use; older keys have none. */
  name?: string;
  hash: string;
  last4: string;
  createdAt: Date;
  /** After this moment the key no longer works: set by rotation with a grace. */
  expiresAt: Date | null;
  revokedAt: Date | null;
  /** About when a request last came with it; absent = never, as far as is known. */
  lastUsedAt?: Date;
}

/** A secret that signs access tokens, encrypted; the newest signs, all verify. */
export interface TokenSecret {
  kid: string;
  encrypted: string;
  createdAt: Date;
  /** Absent = HS256. With ES256 the encrypted text is a private key. */
  algorithm?: TokenAlgorithm;
  /** After this moment what it signed counts no more: set by rotation. Absent = still in use. */
  expiresAt?: Date;
}

/** Mail settings of a project (rest-api.md 2.9); secrets are encrypted. */
export interface ProjectMail {
  encryptedKey?: string;
  /** The part of the key that may be shown. */
  keyHint?: string;
  fromEmail?: string;
  encryptedWebhookSecret?: string;
}

/** A project's own bucket (decisions.md 6). */
export interface ProjectBucket {
  /** New at every change, so that files remember which bucket they went to. */
  id: string;
  /** null = AWS itself. */
  endpoint: string | null;
  region: string;
  bucket: string;
  accessKeyId: string;
  /** Encrypted for this project and this field. */
  encryptedSecretAccessKey: string;
  publicUrl: string | null;
  forcePathStyle: boolean;
  setAt: Date;
}

export interface ProjectStorage {
  /** Publishable keys may upload, confirm and delete files. */
  publishableUploads?: boolean;
  bucket?: ProjectBucket;
}

/** Own code that is called before something happens (hooks.md 2). */
export interface ProjectHook {
  id: ObjectId;
  event: string;
  /** What is called, encrypted: an address with its signing secret, or a file's handler. */
  target: string;
  /** What becomes of the request when the handler gives no proper answer. */
  onFailure: 'refuse' | 'allow';
  timeoutMs: number;
  createdAt: Date;
}

export interface Project {
  _id: ObjectId;
  name: string;
  plan: PlanName;
  keys: ApiKey[];
  tokenSecrets: TokenSecret[];
  /** Exact origins, exact hosts or `*.base`; `*` admits all (decisions.md 1). */
  allowedDomains: string[];
  /** Overrides of plan limits by name. */
  limits: Record<string, number>;
  mail?: ProjectMail;
  storage?: ProjectStorage;
  signIn?: SignInSettings;
  /** Absent without any, so that requests of most projects look at nothing else; one for each event. */
  hooks?: ProjectHook[];
  /**
   * Own code: the folder of its files, the variables that they see, their key of the API, and what signs single calls,
   * both encrypted.
   */
  ownCode?: { dir?: string; env?: string[]; key?: string; keyId?: ObjectId; calls?: string };
  state: 'active' | 'deleting';
  createdAt: Date;
  updatedAt: Date;
}

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
