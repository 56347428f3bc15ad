import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { readMailChanges, type MailSettings } from '../mail/project-mail.js';
import { verifyMailKey } from '../mail/verify-mail-key.js';
import type { Project } from '../projects/project.js';
import { updateProjectRecord } from '../projects/project-store.js';
import { nameTaken, readProjectChanges, type ProjectChanges } from '../projects/update-project.js';

export type AnyProjectChanges = ProjectChanges & MailSettings;

/**
 * Changes settings of any kind by one write: all or none. 400 for a bad value or nothing to change, 404 when the
 * project is gone, 409 when the name is taken. `verify`: a new mail provider key is first tried with a live call.
 */
export async function changeProject(
  app: App,
  project: Project,
  changes: AnyProjectChanges,
  { verify = false }: { verify?: boolean } = {},
): Promise<Project> {
  const own = readProjectChanges(changes);
  const mail = readMailChanges(app, project, changes);
  const $set = { ...own.$set, ...mail.$set };
  const $unset = { ...own.$unset, ...mail.$unset };
  if (Object.keys($set).length + Object.keys($unset).length === 0) {
    throw invalid('INVALID_BODY', 'There is nothing to change');
  }
  if (verify && changes.providerApiKey) await verifyMailKey(app, changes.providerApiKey);
  try {
    return await updateProjectRecord(app, project._id, { $set, ...(Object.keys($unset).length > 0 && { $unset }) });
  } catch (error) {
    throw nameTaken(error, changes) ?? error;
  }
}
