import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { AppError, invalid } from '../../errors.js';
import type { Project } from '../projects/project.js';
import { onOwnAccount, requireProviderId } from './audiences.js';
import { isSender } from './mail-address.js';
import { refundSlot, reserveSlots, settleSlots } from './sending/mail-slots.js';
import { requireByokKey, resolveSender } from './project-mail.js';
import { checkRendered } from './read-mail.js';

/** A broadcast request, checked (decisions.md 7). */
interface BroadcastRequest {
  segmentId: string;
  from: string;
  subject: string;
  html?: string;
  text?: string;
  scheduledAt?: string;
}

/**
 * Makes a draft, or with `scheduledAt` a broadcast that leaves then and takes its slot now. 400, 403 BYOK_REQUIRED,
 * 429.
 */
export async function createBroadcast(app: App, project: Project, body: Record<string, unknown>): Promise<unknown> {
  requireByokKey(app, project);
  const { scheduledAt, ...draft } = readBroadcast(app, project, body);
  const create = (scheduling: object): Promise<unknown> =>
    onOwnAccount(app, project, (client, signal) =>
      client.broadcasts.create({ ...draft, ...scheduling } as Parameters<typeof client.broadcasts.create>[0], {
        signal,
      }),
    );
  if (scheduledAt === undefined) return create({});
  return withSlot(app, project, () => create({ send: true, scheduledAt }));
}

/** Sends a draft, now or at `scheduledAt`; one slot of the monthly quota. */
export function sendBroadcast(
  app: App,
  project: Project,
  broadcastId: string,
  body: Record<string, unknown>,
): Promise<unknown> {
  const id = requireProviderId(broadcastId);
  requireByokKey(app, project);
  const scheduledAt = readSchedule(body.scheduledAt);
  return withSlot(app, project, () =>
    onOwnAccount(app, project, (client, signal) =>
      client.broadcasts.send(id, scheduledAt === undefined ? undefined : { scheduledAt }, { signal }),
    ),
  );
}

export function listBroadcasts(app: App, project: Project): Promise<unknown> {
  return onOwnAccount(app, project, (client, signal) => client.broadcasts.list(undefined, { signal }));
}

export function getBroadcast(app: App, project: Project, broadcastId: string): Promise<unknown> {
  const id = requireProviderId(broadcastId);
  return onOwnAccount(app, project, (client, signal) => client.broadcasts.get(id, { signal }));
}

export function deleteBroadcast(app: App, project: Project, broadcastId: string): Promise<unknown> {
  const id = requireProviderId(broadcastId);
  return onOwnAccount(app, project, (client, signal) => client.broadcasts.remove(id, { signal }));
}

/**
 * A slot around one call: given back when the provider refuses, kept when nobody knows whether it went out, as after a
 * crash in the middle.
 */
async function withSlot<T>(app: App, project: Project, call: () => Promise<T>): Promise<T> {
  const slot = new ObjectId();
  await reserveSlots(app, project, [slot], 'calls');
  try {
    return await call();
  } catch (error) {
    if (error instanceof AppError && error.kind !== 'unavailable') await refundSlot(app, project._id, slot, 'calls');
    throw error;
  } finally {
    await settleSlots(app, project._id, [slot], 'calls');
  }
}

function readBroadcast(app: App, project: Project, body: Record<string, unknown>): BroadcastRequest {
  const audience = body.segmentId ?? body.audienceId;
  if (typeof audience !== 'string' || audience === '') throw invalid('INVALID_MAIL', 'audienceId is required');
  if (body.from !== undefined && !isSender(body.from))
    throw invalid('INVALID_MAIL', 'from must be an address, or Name <address>');
  const text = {
    subject: readString(body, 'subject') ?? '',
    html: readString(body, 'html'),
    text: readString(body, 'text'),
  };
  checkRendered(text);
  const scheduledAt = readSchedule(body.scheduledAt);
  return {
    segmentId: requireProviderId(audience),
    from: resolveSender(app, project, body.from),
    subject: text.subject,
    ...(text.html !== undefined && { html: text.html }),
    ...(text.text !== undefined && { text: text.text }),
    ...(scheduledAt !== undefined && { scheduledAt }),
  };
}

function readString(body: Record<string, unknown>, field: string): string | undefined {
  const value = body[field];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw invalid('INVALID_MAIL', `${field} must be a string`);
  return value;
}

function readSchedule(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\dT/.test(value) || Number.isNaN(Date.parse(value))) {
    throw invalid('INVALID_MAIL', 'scheduledAt must be an ISO 8601 date-time');
  }
  return new Date(value).toISOString();
}
