import type { IndexDescription } from 'mongodb';

const DAYS = 24 * 60 * 60;

const BY_PROJECT = { key: { projectId: 1 }, name: 'project' } as const;
const BY_USER = { key: { projectId: 1, userId: 1 }, name: 'project_user' } as const;
const BY_END = { key: { expiresAt: 1 }, name: 'expiresAt' } as const;
const WAITING = { state: 'pending' };

/** The indexes of the service's own collections; those of clients' documents follow from their schema. */
export const SYSTEM_INDEXES: Readonly<Record<string, readonly IndexDescription[]>> = {
  projects: [
    { key: { name: 1 }, name: 'name', unique: true },
    { key: { 'keys.hash': 1 }, name: 'keys_hash', unique: true },
  ],
  collections: [{ key: { projectId: 1, name: 1 }, name: 'project_name', unique: true }],
  jobs: [
    { key: { pool: 1, state: 1, priority: 1, runAt: 1, _id: 1 }, name: 'due' },
    {
      key: { pool: 1, state: 1, priority: 1, party: 1, runAt: 1, _id: 1 },
      name: 'turns',
      partialFilterExpression: { party: { $exists: true } },
    },
    { key: { state: 1, leaseUntil: 1 }, name: 'leases' },
    { key: { uniqueKey: 1 }, name: 'unique_key', unique: true, sparse: true },
    { key: { heldLane: 1 }, name: 'held_lane', unique: true, sparse: true },
    { key: { expireAt: 1 }, name: 'expiry', sparse: true },
  ],
  idempotency_keys: [
    BY_END,
    { key: { projectId: 1, size: 1 }, name: 'project_size' },
    { key: { by: 1 }, name: 'by', sparse: true },
  ],
  audit_log: [{ key: { at: -1 }, name: 'at', expireAfterSeconds: 400 * DAYS }],

  mail_logs: [
    { key: { projectId: 1, sentAt: -1, _id: -1 }, name: 'project_sentAt' },
    {
      key: { projectId: 1, size: 1 },
      name: 'project_size',
      partialFilterExpression: { size: { $exists: true } },
    },
    { key: { providerEmailId: 1 }, name: 'providerEmailId' },
    { key: { status: 1, createdAt: 1 }, name: 'queued', partialFilterExpression: { status: 'queued' } },
  ],
  mail_usage: [BY_PROJECT],
  mail_templates: [{ key: { projectId: 1, name: 1, scope: 1 }, name: 'project_name', unique: true }],
  mail_events: [
    { key: { seenAt: 1 }, name: 'forgotten', expireAfterSeconds: 30 * DAYS },
    { key: { providerEmailId: 1 }, name: 'providerEmailId', sparse: true },
  ],
  mail_outbox: [
    { key: { createdAt: -1 }, name: 'createdAt' },
    { key: { to: 1, createdAt: -1 }, name: 'to_createdAt' },
  ],

  // A delivery that waits has three entries: more are made when it has ended.
  webhook_deliveries: [
    { key: { webhookId: 1, dueAt: 1, lane: 1 }, name: 'due', partialFilterExpression: WAITING },
    { key: { webhookId: 1, lane: 1, seq: 1 }, name: 'lanes', partialFilterExpression: WAITING },
    { key: { webhookId: 1, createdAt: -1, _id: -1 }, name: 'log' },
    // Before version 7 MongoDB takes no two indexes of the same fields.
    {
      key: { projectId: 1, createdAt: -1, _id: -1 },
      name: 'project_delivered',
      partialFilterExpression: { state: 'delivered' },
    },
    {
      key: { projectId: 1, state: 1, createdAt: -1, _id: -1 },
      name: 'project_failed',
      partialFilterExpression: { state: 'failed' },
    },
  ],
  schedules: [
    { key: { projectId: 1, kind: 1, name: 1 }, name: 'project_name', unique: true },
    { key: { projectId: 1, kind: 1, dueAt: 1 }, name: 'project_due' },
    { key: { dueAt: 1 }, name: 'due' },
    { key: { projectId: 1, size: 1 }, name: 'project_size' },
  ],
  webhook_payloads: [{ key: { checkAt: 1 }, name: 'check' }],
  // Written on a MongoDB alone.
  change_log: [
    { key: { c: 1, n: 1 }, name: 'numbers', unique: true, sparse: true },
    { key: { waiting: 1 }, name: 'waiting', sparse: true },
  ],

  sessions: [BY_USER, BY_END],
  token_cutoffs: [{ key: { projectId: 1, expiresAt: 1 }, name: 'project_expiresAt' }, BY_END],
  one_time_codes: [BY_PROJECT, BY_END],
  one_time_tokens: [BY_PROJECT, BY_END],
  counters: [BY_PROJECT, BY_END],
  social_identities: [BY_USER],
  passkeys: [BY_USER],
  invites: [{ key: { projectId: 1, createdAt: -1 }, name: 'project_created' }, BY_END],

  files: [
    { key: { path: 1 }, name: 'path', unique: true },
    { key: { projectId: 1, state: 1 }, name: 'project_state' },
    { key: { projectId: 1, state: 1, createdAt: -1, _id: -1 }, name: 'listing' },
    { key: { dueAt: 1 }, name: 'due', sparse: true },
    { key: { uploadedBy: 1 }, name: 'uploaded_by', sparse: true },
  ],
  storage_usage: [{ key: { projectId: 1 }, name: 'of_users', sparse: true }],

  operators: [{ key: { email: 1 }, name: 'email', unique: true }],
  operator_sessions: [
    { key: { operatorId: 1 }, name: 'operator' },
    { key: { expiresAt: 1 }, name: 'expiry', expireAfterSeconds: 0 },
  ],
};
