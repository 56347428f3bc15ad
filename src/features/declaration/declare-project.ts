import type { App } from '../../app.js';
import { declareCollection } from '../collections/schema/collection-declaration.js';
import { listCollections } from '../collections/list-collections.js';
import { PUBLIC_EMAIL, USERS } from '../collections/users-collection.js';
import type { Field } from '../collections/fields/field.js';
import { templateStore } from '../mail/mail-template.js';
import { OVERRIDABLE_LIMITS } from '../plans/plan-limits.js';
import type { Project } from '../projects/project.js';
import { signInOf } from '../projects/sign-in-settings.js';
import { tokenAlgorithmOf } from '../projects/token-algorithm.js';
import { listWebhooks } from '../webhooks/list-webhooks.js';
import type { ProjectDeclaration, TemplateDeclaration, WebhookDeclaration } from './project-declaration.js';

/**
 * The declaration that makes a project what this one is; applying it to this one changes nothing. Secrets are no part
 * of it. Of several webhooks with one address it has the oldest.
 */
export async function declareProject(app: App, project: Project): Promise<ProjectDeclaration> {
  const collections = await listCollections(app, project._id);
  const users = collections.find(({ name }) => name === USERS);
  const limits = Object.entries(project.limits).filter(([name]) => OVERRIDABLE_LIMITS.includes(name));
  return {
    name: project.name,
    plan: project.plan,
    allowedDomains: project.allowedDomains,
    ...(limits.length > 0 && { limits: Object.fromEntries(limits) }),
    storage: { publishableUploads: project.storage?.publishableUploads ?? false },
    ...((project.signIn ?? tokenAlgorithmOf(project) !== 'HS256') && { signIn: signInOf(project) }),
    users: { fields: (users?.fields ?? []).filter(isOwn) },
    collections: collections.filter((collection) => collection !== users).map(declareCollection),
    mail: { from: project.mail?.fromEmail ?? null, templates: await declareTemplates(app, project) },
    webhooks: await declareWebhooks(app, project),
  };
}

/** Fields of users that a declaration names: email and password are always there. */
function isOwn(field: Field): boolean {
  return field.name === PUBLIC_EMAIL.name ? field.public === true : field.name !== 'password';
}

async function declareTemplates(app: App, project: Project): Promise<TemplateDeclaration[]> {
  const stored = templateStore(app).find({ projectId: project._id, scope: 'project' }).sort({ name: 1 });
  return (await stored.toArray()).map(({ name, subject, html, text }) => ({
    name,
    subject,
    ...(html !== undefined && { html }),
    ...(text !== undefined && { text }),
  }));
}

async function declareWebhooks(app: App, project: Project): Promise<WebhookDeclaration[]> {
  const webhooks = await listWebhooks(app, project);
  const oldest = webhooks.filter(({ url }, at) => webhooks.findIndex((other) => other.url === url) === at);
  return oldest.map(({ url, events, description, disabled }) => ({
    url,
    events,
    ...(description !== '' && { description }),
    enabled: disabled === null,
  }));
}
