import type { App } from '../../app.js';
import { missing } from '../../errors.js';
import { findObjectId } from '../../platform/ids.js';
import type { Project } from '../projects/project.js';
import { mailLogStore, presentMailLog, type MailStatus } from './mail-log.js';
import { chooseProvider } from './project-mail.js';

export const LOGS_PAGE = 50;
export const MAX_LOGS_PAGE = 200;

export interface MailLogQuery {
  page?: number;
  limit?: number;
  status?: MailStatus;
  /** Only those to this address. */
  to?: string;
}

/** The latest logs of a project by `sentAt`, newest first (rest-api.md 4.4, 8). */
export async function listMailLogs(
  app: App,
  project: Project,
  { page = 1, limit = LOGS_PAGE, status, to }: MailLogQuery = {},
) {
  const filter = {
    projectId: project._id,
    ...(status !== undefined && { status }),
    ...(to !== undefined && { to }),
  };
  const [logs, total] = await Promise.all([
    mailLogStore(app)
      .find(filter, { projection: { encryptedMail: 0 } })
      .sort({ sentAt: -1, _id: -1 })
      .skip((page - 1) * limit)
      .limit(limit)
      .toArray(),
    mailLogStore(app).countDocuments(filter),
  ]);
  return { items: logs.map(presentMailLog), total, page, limit };
}

/**
 * A log by the provider's id (or ours, while it has none) with what the provider says now. 404 for another project's.
 */
export async function readLiveStatus(app: App, project: Project, id: string) {
  const own = findObjectId(id);
  const log = await mailLogStore(app).findOne(
    { projectId: project._id, $or: [{ providerEmailId: id }, ...(own ? [{ _id: own }] : [])] },
    { projection: { encryptedMail: 0 } },
  );
  if (!log) throw missing('NOT_FOUND', 'There is no email log with this id');
  const live = log.providerEmailId ? await chooseProvider(app, project).provider.findStatus(log.providerEmailId) : null;
  return { dbLog: presentMailLog(log), last_event: live?.lastEvent ?? log.status, providerStatus: live?.raw ?? null };
}
