import { presentBucket } from '../files/bucket/project-bucket.js';
import { presentMailSettings } from '../mail/project-mail.js';
import type { Project } from '../projects/project.js';
import { presentProject } from '../projects/present-project.js';

/** A project with its settings of every kind, secrets masked: what an operator may see and change. */
export function presentProjectDetails(project: Project) {
  const { providerApiKey, providerFromEmail, webhookSecret } = presentMailSettings(project);
  return {
    ...presentProject(project),
    providerApiKey,
    providerFromEmail,
    providerWebhookSecret: webhookSecret,
    storage: {
      publishableUploads: project.storage?.publishableUploads ?? false,
      bucket: presentBucket(project).bucket,
    },
  };
}
