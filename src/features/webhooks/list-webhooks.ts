import type { App } from '../../app.js';
import type { Project } from '../projects/project.js';
import type { Webhook } from './webhook.js';
import { readProjectWebhooks } from './webhook-store.js';

/** The webhooks of a project, oldest first. */
export async function listWebhooks(app: App, project: Project): Promise<Webhook[]> {
  return (await readProjectWebhooks(app, project._id)).webhooks;
}
