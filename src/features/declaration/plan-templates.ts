import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import { templateStore } from '../mail/mail-template.js';
import { checkTemplate, type MailText } from '../mail/render-template.js';
import type { Project } from '../projects/project.js';
import type { TemplateDeclaration } from './project-declaration.js';

export type TemplateChange =
  | { action: 'add'; name: string; to: MailText }
  | { action: 'change'; name: string; what: string[]; to: MailText }
  | { action: 'drop'; name: string };

const PARTS = ['subject', 'html', 'text'] as const;

/**
 * The difference between a project's own mail templates and the declared ones; none without a declaration. Those not
 * named go only with `prune`. 400 for a bad one.
 */
export async function planTemplates(
  app: App,
  project: Project | null,
  declared: readonly TemplateDeclaration[] | undefined,
  { prune }: { prune: boolean },
): Promise<TemplateChange[]> {
  if (!declared) return [];
  const stored = project ? await templateStore(app).find({ projectId: project._id, scope: 'project' }).toArray() : [];
  const existing = new Map(stored.map((template) => [template.name, template]));
  const changes: TemplateChange[] = [];
  const named = new Set<string>();
  for (const { name, ...to } of declared) {
    if (named.has(name)) throw invalid('INVALID_FILE', `The template "${name}" is declared twice`);
    named.add(name);
    checkTemplate(to);
    const template = existing.get(name);
    const what = PARTS.filter((part) => template?.[part] !== to[part]);
    if (!template) changes.push({ action: 'add', name, to });
    else if (what.length > 0) changes.push({ action: 'change', name, what: what.map((part) => `~ ${part}`), to });
  }
  const dropped = prune ? [...existing.keys()].filter((name) => !named.has(name)) : [];
  return [...changes, ...dropped.map((name) => ({ action: 'drop' as const, name }))];
}
