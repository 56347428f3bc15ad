import { isDeepStrictEqual } from 'node:util';
import { ObjectId } from 'bson';
import type { Actor } from '../../../platform/actor.js';
import { HIDDEN_FIELD } from '../../collections/fields/field.js';
import { USERS } from '../../collections/users-collection.js';
import { deliveryId, type Delivery, type DeliveryAttempt } from './delivery.js';
import { TEST_EVENT, type Action } from '../webhook-event.js';
import type { Webhook } from '../webhook-store.js';

/** A change of a document, ready to be sent to some webhooks. */
export interface DocumentEvent {
  id: string;
  action: Action;
  projectId: ObjectId;
  collection: string;
  documentId: string;
  /** As of WaitingEvent. */
  seq: number;
  /** Of the payload that they share. */
  bodyBytes: number;
}

export function generateEventId(): string {
  return `evt_${new ObjectId().toHexString()}`;
}

/** Fields of an account, at any depth, that no receiver may see, whatever a schema calls them. */
const CONFIDENTIAL = /password|token|secret|otp/i;
const withoutConfidential = (name: string, value: unknown): unknown => (CONFIDENTIAL.test(name) ? undefined : value);

/**
 * A delivery is stored with its payload, and a stored document can have 16 MB: a few characters take six times their
 * bytes in JSON.
 */
const MAX_PAYLOAD_BYTES = 8 * 1024 * 1024;

/**
 * The payload of a data event (decisions.md 8): the stored document without the service's own notes, and without
 * confidential fields of users. Of a document that would make it larger than 8 MiB it holds the `_id` only.
 */
export function buildPayload(
  event: Omit<DocumentEvent, 'bodyBytes' | 'seq'> & { at: Date; actor: Actor },
  document: Record<string, unknown>,
  before: Record<string, unknown> | null,
): string {
  const confidential = event.collection === USERS ? withoutConfidential : undefined;
  const payload = {
    id: event.id,
    event: `${event.collection}.${event.action}`,
    timestamp: event.at.toISOString(),
    projectId: event.projectId.toHexString(),
    collection: event.collection,
    action: event.action,
    documentId: event.documentId,
    actor: event.actor,
    ...(before && HAS_PREVIOUS.has(event.action) && previousDocument(before, document, confidential)),
  };
  const head = `${JSON.stringify(payload, confidential).slice(0, -1)},"data":{"_id":${JSON.stringify(event.documentId)}`;
  const body = `${head}${shownFields(document, confidential)}}}`;
  return Buffer.byteLength(body) <= MAX_PAYLOAD_BYTES ? body : `${head}}}`;
}

/**
 * The fields of a stored document that are its project's to see, but its id, as the rest of a JSON object. As text at
 * once: a copy of an object whose keys no other has takes V8 milliseconds.
 */
function shownFields(document: Record<string, unknown>, confidential?: typeof withoutConfidential): string {
  let text = '';
  for (const name of shownNames(document)) {
    const value = confidential ? confidential(name, document[name]) : document[name];
    const shown = JSON.stringify(value, confidential);
    if (shown !== undefined) text += `,${JSON.stringify(name)}:${shown}`;
  }
  return text;
}

const shownNames = (document: Record<string, unknown>): string[] =>
  Object.keys(document).filter((name) => name !== '_id' && name !== HIDDEN_FIELD);

/** Events that say what was there before: of a new or recovered document nothing of its content has changed. */
const HAS_PREVIOUS: ReadonlySet<Action> = new Set(['update', 'delete']);
const MAX_BEFORE_BYTES = 16 * 1024;

/**
 * The old values of the top-level fields that a change has changed, null where there was none; `updatedAt`, which every
 * change changes, is left out.
 */
function previousDocument(
  before: Record<string, unknown>,
  after: Record<string, unknown>,
  confidential?: typeof withoutConfidential,
): { before: Record<string, unknown> } | { beforeOmitted: true } {
  const changed: Record<string, unknown> = {};
  for (const name of new Set([...shownNames(before), ...shownNames(after)])) {
    if (name !== 'updatedAt' && !isDeepStrictEqual(before[name], after[name])) changed[name] = before[name] ?? null;
  }
  const bytes = Buffer.byteLength(JSON.stringify(changed, confidential));
  return bytes <= MAX_BEFORE_BYTES ? { before: changed } : { beforeOmitted: true };
}

export function buildDelivery(event: DocumentEvent, webhook: Webhook, nowMs: number): Delivery {
  return {
    ...emptyDelivery(event.id, webhook, nowMs),
    projectId: event.projectId,
    event: `${event.collection}.${event.action}`,
    collection: event.collection,
    action: event.action,
    documentId: event.documentId,
    lane: event.documentId,
    seq: event.seq,
    bodyBytes: event.bodyBytes,
  };
}

/** The delivery of a test event. */
export function buildPing(projectId: ObjectId, webhook: Webhook, nowMs: number): Delivery & { body: string } {
  const id = generateEventId();
  const payload = {
    id,
    event: TEST_EVENT,
    timestamp: new Date(nowMs).toISOString(),
    projectId: projectId.toHexString(),
    collection: null,
    action: 'ping',
    documentId: null,
    data: { webhookId: webhook.id.toHexString() },
  };
  return {
    ...emptyDelivery(id, webhook, nowMs),
    projectId,
    event: TEST_EVENT,
    collection: null,
    action: 'ping',
    documentId: null,
    lane: deliveryId(id, webhook.id),
    seq: 0,
    body: JSON.stringify(payload),
  };
}

/** What a delivery of one try is, once that has ended. */
export function endedBy(attempt: DeliveryAttempt, isDelivered: boolean) {
  const state = isDelivered ? ('delivered' as const) : ('failed' as const);
  return { state, claims: 1, failures: isDelivered ? 0 : 1, attempts: [attempt] };
}

/** The part of a delivery that no try has changed yet. */
export function emptyDelivery(eventId: string, webhook: Pick<Webhook, 'id'>, nowMs: number) {
  const now = new Date(nowMs);
  return {
    _id: deliveryId(eventId, webhook.id),
    webhookId: webhook.id,
    eventId,
    state: 'pending' as const,
    dueAt: now,
    claims: 0,
    unfinished: 0,
    failures: 0,
    attempts: [],
    createdAt: now,
    updatedAt: now,
  };
}
