import { ObjectId } from 'bson';
import type { App } from '../../app.js';
import { invalid, missing } from '../../errors.js';
import { storeOf } from '../../platform/database/database.js';
import { readPackageFile } from '../../package.js';
import type { Project } from '../projects/project.js';
import type { TemplateUsed } from './mail-log.js';
import { checkTemplate, type MailText } from './render-template.js';

/** A project's own template; one of a system template's name overrides it. */
export interface MailTemplate extends MailText {
  _id: ObjectId;
  projectId: ObjectId;
  name: string;
  /** `embedded`: carried along from an older project's record, looked up last. */
  scope: 'project' | 'embedded';
  updatedAt: Date;
}

const MAIL_TEMPLATES = 'mail_templates';
const TEMPLATE_NAME = /^[a-z0-9][a-z0-9_.-]{0,63}$/i;
const MAX_TEMPLATES = 200;
const SYSTEM_TEMPLATES = [
  'welcome',
  'verification',
  'password-reset',
  'login-code',
  'email-change',
  'email-change-notice',
  'mfa-reset-notice',
  'invite',
] as const;

export const templateStore = storeOf<MailTemplate>(MAIL_TEMPLATES);

export interface FoundTemplate {
  text: MailText;
  used: TemplateUsed;
}

/**
 * Looks a template up by id, or by name: the project's override, the system's, then one embedded in an older project.
 * 404 TEMPLATE_NOT_FOUND.
 */
export async function requireTemplate(
  app: App,
  project: Project,
  by: { id: ObjectId } | { name: string },
): Promise<FoundTemplate> {
  const found = 'id' in by ? await findOwn(app, project, { _id: by.id }) : await findByName(app, project, by.name);
  if (!found) throw missing('TEMPLATE_NOT_FOUND', 'There is no such template');
  return found;
}

async function findByName(app: App, project: Project, name: string): Promise<FoundTemplate | null> {
  return (
    (await findOwn(app, project, { name, scope: 'project' })) ??
    findSystemTemplate(name) ??
    (await findOwn(app, project, { name, scope: 'embedded' }))
  );
}

async function findOwn(app: App, project: Project, filter: Partial<MailTemplate>): Promise<FoundTemplate | null> {
  const template = await templateStore(app).findOne({ projectId: project._id, ...filter });
  if (!template) return null;
  const { _id, name, scope, subject, html, text } = template as MailTemplate;
  return {
    text: { subject, ...(html !== undefined && { html }), ...(text !== undefined && { text }) },
    used: { id: _id.toHexString(), scope, key: name, name },
  };
}

const systemTexts = new Map<string, MailText>();

/** A template that ships with the service, or null. Read from its files once per process. */
function findSystemTemplate(name: string): FoundTemplate | null {
  if (!(SYSTEM_TEMPLATES as readonly string[]).includes(name)) return null;
  let text = systemTexts.get(name);
  if (!text) {
    text = {
      subject: readPackageFile('templates', 'mail', name, 'subject.txt').trim(),
      html: readPackageFile('templates', 'mail', name, 'body.html'),
      text: readPackageFile('templates', 'mail', name, 'body.txt'),
    };
    systemTexts.set(name, text);
  }
  return { text, used: { id: null, scope: 'system', key: name, name } };
}

/** All templates a project can name: its own, and the system's that it does not override. */
export async function listTemplates(
  app: Pick<App, 'db'>,
  project: Project,
): Promise<{ name: string; scope: MailTemplate['scope'] | 'system'; subject: string; id: string | null }[]> {
  const own = await templateStore(app)
    .find({ projectId: project._id })
    .sort({ name: 1 })
    .limit(MAX_TEMPLATES)
    .toArray();
  const overridden = new Set(own.filter((template) => template.scope === 'project').map((template) => template.name));
  return [
    ...own.map(({ _id, name, scope, subject }) => ({ id: _id.toHexString(), name, scope, subject })),
    ...SYSTEM_TEMPLATES.filter((name) => !overridden.has(name)).map((name) => ({
      id: null,
      name,
      scope: 'system' as const,
      subject: findSystemTemplate(name)!.text.subject,
    })),
  ];
}

/**
 * Stores or replaces a project's template by one write. 400 for a bad name, an empty subject or body, or placeholders
 * that mails do not have.
 */
export async function setTemplate(app: App, project: Project, name: string, text: MailText): Promise<MailTemplate> {
  if (!TEMPLATE_NAME.test(name)) throw invalid('INVALID_NAME', 'A template name has 1 to 64 letters, digits or . _ -');
  if (text.subject.trim() === '') throw invalid('INVALID_TEMPLATE', 'Subject is required');
  if (!text.html?.trim() && !text.text?.trim()) throw invalid('INVALID_TEMPLATE', 'Provide html or text');
  checkTemplate(text);
  const { subject, html, text: plain } = text;
  const saved = await templateStore(app).findOneAndUpdate(
    { projectId: project._id, name, scope: 'project' },
    {
      $set: {
        subject,
        ...(html !== undefined && { html }),
        ...(plain !== undefined && { text: plain }),
        updatedAt: new Date(app.clock.now()),
      },
      $setOnInsert: { _id: new ObjectId() },
      ...((html === undefined || plain === undefined) && {
        $unset: { ...(html === undefined && { html: '' }), ...(plain === undefined && { text: '' }) },
      }),
    },
    { upsert: true, returnDocument: 'after' },
  );
  return saved as MailTemplate;
}

/** Removes a project's own template; a system template of that name shows through again. 404 when there is none. */
export async function removeTemplate(app: App, project: Project, name: string): Promise<void> {
  const { deletedCount } = await templateStore(app).deleteOne({ projectId: project._id, name, scope: 'project' });
  if (deletedCount === 0) {
    throw missing('TEMPLATE_NOT_FOUND', `The project has no template "${name.slice(0, 64)}" of its own`);
  }
}
