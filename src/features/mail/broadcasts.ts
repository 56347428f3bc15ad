import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { AppError, invalid } from '../../errors.js';
import { openObject, orNull, TEXT, type TypeOf } from '../../platform/schema/schema.js';
import type { Project } from '../projects/project.js';
import { onOwnAccount, requireProviderId } from './audiences.js';
import { refundMailQuota, reserveMailQuota, commitMailQuota } from './sending/mail-quota.js';
import { isSender, requireByokKey, resolveSender } from './project-mail.js';
import { checkRendered, SUBJECT } from './read-mail.js';

const SCHEDULED_AT = orNull({
  ...TEXT,
  description: 'Send time, ISO 8601.',
  examples: ['2027-01-01T09:00:00Z'],
});
export const NEW_BROADCAST = {
  ...openObject(
    {
      'audienceId?': orNull(TEXT),
      'segmentId?': orNull(TEXT),
      'from?': { ...TEXT, description: 'An address, or `Name <address>`. Default: the project’s sender.' },
      subject: SUBJECT,
      'html?': orNull(TEXT),
      'text?': orNull(TEXT),
      'scheduledAt?': SCHEDULED_AT,
    },
    'NewBroadcast',
  ),
  description: 'Needs `audienceId` (or `segmentId`, the same) and html or text.',
};
export const BROADCAST_SENDING = openObject({ 'scheduledAt?': SCHEDULED_AT });
type NewBroadcast = TypeOf<typeof NEW_BROADCAST>;

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
export async function createBroadcast(app: App, project: Project, body: NewBroadcast): Promise<unknown> {
  requireByokKey(app, project);
  const { scheduledAt, ...draft } = readBroadcast(app, project, body);
  const create = (scheduling: object): Promise<unknown> =>
    onOwnAccount(app, project, (client, signal) =>
      client.broadcasts.create({ ...draft, ...scheduling } as Parameters<typeof client.broadcasts.create>[0], {
        signal,
      }),
    );
  if (scheduledAt === undefined) return create({});
  return withMailQuota(app, project, () => create({ send: true, scheduledAt }));
}

/** Sends a draft, now or at `scheduledAt`; one slot of the monthly quota. */
export function sendBroadcast(
  app: App,
  project: Project,
  broadcastId: string,
  body: TypeOf<typeof BROADCAST_SENDING>,
): Promise<unknown> {
  const id = requireProviderId(broadcastId);
  requireByokKey(app, project);
  const scheduledAt = readSchedule(body.scheduledAt);
  return withMailQuota(app, project, () =>
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
async function withMailQuota<T>(app: App, project: Project, call: () => Promise<T>): Promise<T> {
  const slot = new ObjectId();
  await reserveMailQuota(app, project, [slot], 'calls');
  try {
    return await call();
  } catch (error) {
    if (error instanceof AppError && error.kind !== 'unavailable') {
      await refundMailQuota(app, project._id, slot, 'calls');
    }
    throw error;
  } finally {
    await commitMailQuota(app, project._id, [slot], 'calls');
  }
}

function readBroadcast(app: App, project: Project, body: NewBroadcast): BroadcastRequest {
  const audience = body.segmentId ?? body.audienceId;
  if (!audience) throw invalid('INVALID_MAIL', 'audienceId is required');
  if (body.from !== undefined && !isSender(body.from)) {
    throw invalid('INVALID_MAIL', 'from must be an address, or Name <address>');
  }
  const { subject } = body;
  const bodies = { ...(body.html != null && { html: body.html }), ...(body.text != null && { text: body.text }) };
  checkRendered({ subject, ...bodies });
  const scheduledAt = readSchedule(body.scheduledAt);
  return {
    segmentId: requireProviderId(audience),
    from: resolveSender(app, project, body.from),
    subject,
    ...bodies,
    ...(scheduledAt !== undefined && { scheduledAt }),
  };
}

function readSchedule(value: string | null | undefined): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (!/^\d{4}-\d\d-\d\dT/.test(value) || Number.isNaN(Date.parse(value))) {
    throw invalid('INVALID_MAIL', 'scheduledAt must be an ISO 8601 date-time');
  }
  return new Date(value).toISOString();
}
