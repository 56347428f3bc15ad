import type { App } from '../../app.js';
import type { ChangeOptions } from '../collections/change-collection.js';
import { applyDeclared } from '../changes/apply-declared.js';
import { removeTemplate, setTemplate } from '../mail/mail-template.js';
import { createProject } from '../projects/create-project.js';
import type { Project } from '../projects/project.js';
import { addWebhook } from '../webhooks/add-webhook.js';
import { editWebhook } from '../webhooks/edit-webhook.js';
import { removeWebhook } from '../webhooks/remove-webhook.js';
import { changeProject } from './change-project.js';
import type { ProjectPlan } from './plan-projects.js';
import type { TemplateChange } from './plan-templates.js';
import type { WebhookChange } from './plan-webhooks.js';

/** Secrets that are shown once: the keys of a created project, the secret of a created webhook. */
export type CreatedSecret =
  { project: string; keys: { publishable: string; secret: string } } | { project: string; url: string; secret: string };

/**
 * Carries out plans, one project after the other; each step is whole by itself and a new plan holds what a failure
 * left. Hands on each secret that is shown once as soon as it exists. Stops between two steps when it is told to.
 */
export async function applyProjects(
  app: App,
  plans: readonly ProjectPlan[],
  { stop, onCreated, ...options }: ChangeOptions & { stop: AbortSignal; onCreated: (created: CreatedSecret) => void },
): Promise<void> {
  for (const plan of plans) {
    stop.throwIfAborted();
    let { project } = plan;
    if (!project) {
      const created = await createProject(app, { name: plan.name, plan: plan.settings.plan, ifNotExists: true });
      project = created.project;
      if (created.keys) onCreated({ project: plan.name, keys: created.keys });
    }
    if (plan.what.length > 0) project = await changeProject(app, project, plan.settings);
    await applyDeclared(app, project, plan.collections, { stop, ...options });
    for (const change of plan.templates) await applyTemplate(app, project, change);
    for (const change of removalsFirst(plan.webhooks)) {
      stop.throwIfAborted();
      const secret = await applyWebhook(app, project, change);
      if (secret) onCreated({ project: plan.name, ...secret });
    }
  }
}

async function applyTemplate(app: App, project: Project, change: TemplateChange): Promise<void> {
  if (change.action === 'drop') await removeTemplate(app, project, change.name);
  else await setTemplate(app, project, change.name, change.to);
}

/** A plan limits the number of webhooks: what goes makes room for what comes. */
function removalsFirst(changes: readonly WebhookChange[]): WebhookChange[] {
  return [...changes].sort((a, b) => Number(b.action === 'drop') - Number(a.action === 'drop'));
}

async function applyWebhook(
  app: App,
  project: Project,
  change: WebhookChange,
): Promise<{ url: string; secret: string } | null> {
  if (change.action === 'drop') {
    await removeWebhook(app, project, change.id);
    return null;
  }
  const { url, events, description, enabled } = change.to;
  if (change.action === 'change') {
    await editWebhook(app, project, change.id, { events, description, enabled });
    return null;
  }
  const { secret } = await addWebhook(app, project, { url, events, description, enabled, ifNotExists: true });
  return secret === null ? null : { url, secret };
}
