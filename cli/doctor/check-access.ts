import type { App } from '../../src/app.js';
import { listExposed, type Exposed } from '../../src/features/management/list-exposed.js';
import { listProjects } from '../../src/features/projects/project-store.js';
import { countOf } from '../view/present-amount.js';
import { passed, type CheckResult } from './check.js';

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
