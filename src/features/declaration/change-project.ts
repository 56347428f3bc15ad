import type { App } from '../../app.js';
import { readMailChanges, type MailSettings } from '../mail/project-mail.js';
import { verifyMailKey } from '../mail/verify-mail-key.js';
import type { Project } from '../projects/project.js';
import {
  readProjectChanges,
  requireChange,
  saveProjectChanges,
  type ProjectChanges,
} from '../projects/update-project.js';

export type AnyProjectChanges = ProjectChanges & MailSettings;

/**
 * Changes settings of any kind by one write: all or none. 400 for a bad value or nothing to change, 404 when the
 * project is gone, 409 when the name is taken. `verify`: a new mail provider key is first tried with a live call.
 * `prove` may refuse what is known to be right.
 */
export async function changeProject(
  app: App,
  project: Project,
  changes: AnyProjectChanges,
  { verify = false, prove }: { verify?: boolean; prove?: () => Promise<void> } = {},
): Promise<Project> {
  const own = readProjectChanges(changes);
  const mail = readMailChanges(app, project, changes);
  const update = { $set: { ...own.$set, ...mail.$set }, $unset: { ...own.$unset, ...mail.$unset }, tokens: own.tokens };
  requireChange(update);
  await prove?.();
  if (verify && changes.providerApiKey) await verifyMailKey(app, changes.providerApiKey);
  return saveProjectChanges(app, project, update, changes);
}
