import type { App } from '../../app.js';
import type { ChangeOptions } from '../collections/change-collection.js';
import { applyDeclared } from '../changes/apply-declared.js';
import { clearBucket, setBucket } from '../files/bucket/project-bucket.js';
import { removeTemplate, setTemplate } from '../mail/mail-template.js';
import { createProject } from '../projects/create-project.js';
import type { Project } from '../projects/project.js';
import { removeSocialProvider, setSocialProvider } from '../users/social/social-provider.js';
import { addWebhook } from '../webhooks/add-webhook.js';
import { editWebhook, removeWebhook } from '../webhooks/edit-webhook.js';
import type { BucketChange } from './plan-accounts.js';
import { changeProject, type ProjectPlan, type TemplateChange } from './plan-projects.js';
import { applyHook, applyOwnCode, applySchedule } from './plan-own-code.js';
import type { ProviderChange } from './plan-providers.js';
import type { WebhookChange } from './plan-webhooks.js';

/** Secrets that are shown once: the keys of a created project, the secret of a created webhook. */
export type CreatedSecret =
  | { project: string; keys: { publishable: string; secret: string } }
  | { project: string; url: string; secret: string }
  | { project: string; hook: string; secret: string }
  | { project: string; schedule: string; secret: string };

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
    if (Object.keys(plan.settings).length > 0) project = await changeProject(app, project, plan.settings);
    if (plan.bucket) project = await applyBucket(app, project, plan.bucket);
    await applyDeclared(app, project, plan.collections, { stop, ...options });
    for (const change of plan.providers) await applyProvider(app, project, change);
    for (const change of plan.templates) await applyTemplate(app, project, change);
    for (const change of removalsFirst(plan.webhooks)) {
      stop.throwIfAborted();
      const secret = await applyWebhook(app, project, change);
      if (secret) onCreated({ project: plan.name, ...secret });
    }
    if (plan.ownCode) await applyOwnCode(app, project, plan.ownCode);
    for (const change of plan.hooks) {
      stop.throwIfAborted();
      const secret = await applyHook(app, project, change);
      if (secret !== null) onCreated({ project: plan.name, hook: change.event, secret });
    }
    for (const change of plan.schedules) {
      stop.throwIfAborted();
      const secret = await applySchedule(app, project, change);
      if (secret !== null) onCreated({ project: plan.name, schedule: change.name, secret });
    }
  }
}

function applyBucket(app: App, project: Project, { to }: BucketChange): Promise<Project> {
  return to ? setBucket(app, project, to, false) : clearBucket(app, project);
}

async function applyProvider(app: App, project: Project, change: ProviderChange): Promise<void> {
  if (change.action === 'drop') await removeSocialProvider(app, project, change.name);
  else await setSocialProvider(app, project, change.to);
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
  const { url, ...wanted } = change.to;
  if (change.action === 'change') {
    await editWebhook(app, project, change.id, wanted);
    return null;
  }
  const { secret } = await addWebhook(app, project, { url, ...wanted, ifNotExists: true });
  return secret === null ? null : { url, secret };
}
