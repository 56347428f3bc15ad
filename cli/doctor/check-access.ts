import type { App } from '../../src/app.js';
import { listExposed, type Exposed } from '../../src/features/management/list-exposed.js';
import { listProjects } from '../../src/features/projects/project-store.js';
import { countOf } from '../view/present.js';
import { passed, type CheckResult, failed } from './check.js';
import { listCollections } from '../../src/features/collections/collection-store.js';
import { namedSets, rulesOf } from '../../src/features/collections/rules/collection-rules.js';
import { reviewRules } from '../../src/features/collections/rules/review-rules.js';
import { documentPaths } from '../../src/features/collections/rules/rule.js';

const MAX_LISTED = 50;

/** What anyone with a publishable key can do, each with the command that closes it. No failure: it may be intended. */
export async function checkExposed(app: App): Promise<CheckResult> {
  const open: (Exposed & { project: string })[] = [];
  const projects = await listProjects(app);
  for (const project of projects) {
    const exposed = await listExposed(app, project);
    open.push(...exposed.map((each) => ({ ...each, project: project.name })));
  }
  if (open.length === 0) return passed('access', 'there are no projects');
  const collections = open.filter(({ kind }) => kind === 'collection').length;
  const detail = `anyone with a publishable key can use ${countOf(collections, 'collection')} of ${countOf(projects.length, 'project')}`;
  const lines = open.slice(0, MAX_LISTED).map(({ project, ...exposed }) => `${project}/${presentExposed(exposed)}`);
  if (open.length > MAX_LISTED) {
    lines.push(`and ${open.length - MAX_LISTED} more: bsvc rules check --project <project> lists them`);
  }
  return { ...passed('access', detail), hint: lines.join('\n') };
}

/** One line: what is open, and the command that closes it. */
export function presentExposed({ name, kind, what, closes }: Exposed): string {
  return `${kind === 'collection' ? name : kind}: ${what}. To close it: ${closes}`;
}

const MAX_NAMED = 5;

/** Whether the rules of all projects can be applied, and what a MongoDB holds less exactly than the embedded engine. */
export async function checkAccessRules(app: App): Promise<CheckResult> {
  const wrong: string[] = [];
  const weaker: string[] = [];
  let ruled = 0;
  for (const project of await listProjects(app)) {
    for (const collection of await listCollections(app, project._id)) {
      if (!collection.rules) continue;
      ruled++;
      const findings = await reviewRules(app, collection, { data: false });
      const name = `${project.name}/${collection.name}`;
      if (findings.length > 0) wrong.push(name);
      const { read } = rulesOf(collection);
      if (namedSets(collection).length > 0 || documentPaths([read]).length > 0) weaker.push(name);
    }
  }
  if (ruled === 0) return passed('rules', 'no collection has rules');
  const all = `rules of ${countOf(ruled, 'collection')}`;
  if (wrong.length > 0) {
    return failed(
      'rules',
      `${all}, something to look at in ${some(wrong)}`,
      'bsvc rules check --project <project> says what.',
    );
  }
  if (app.db.changeLogs || weaker.length === 0) return passed('rules', all);
  const hint =
    'On MongoDB, memberships that a read uses may be a second old, and followers of changes start over when theirs change: see the guide to rules.';
  return { ...passed('rules', `${all}, of which ${some(weaker)} depend on documents or memberships`), hint };
}

function some(names: readonly string[]): string {
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  return names.slice(0, MAX_NAMED).join(', ') + more;
}
