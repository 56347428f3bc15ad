import { presentMailSettings } from '../../../src/features/mail/project-mail.js';
import type { Project } from '../../../src/features/projects/project.js';
import type { Result } from '../../view/output.js';

/** A project's own mail account, secrets masked. */
export function presentByok(project: Project): Result {
  const settings = presentMailSettings(project);
  return {
    json: settings,
    quiet: settings.providerApiKey ?? '',
    text: (view) =>
      view.table(
        ['setting', 'value'],
        [
          ['mail provider key', settings.providerApiKey ?? 'none: the service’s own provider sends'],
          ['default sender', settings.providerFromEmail ?? 'the server’s'],
          ['webhook secret', settings.webhookSecret ?? 'none'],
        ],
      ),
  };
}
