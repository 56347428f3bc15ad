import type { App } from '../../src/app.js';
import { listCollections } from '../../src/features/collections/list-collections.js';
import { namedSets, rulesOf } from '../../src/features/collections/rules/collection-rules.js';
import { reviewRules } from '../../src/features/collections/rules/review-rules.js';
import { documentPaths } from '../../src/features/collections/rules/rule.js';
import { listProjects } from '../../src/features/projects/project-store.js';
import { countOf } from '../view/present-amount.js';
import { failed, passed, type CheckResult } from './check.js';

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
    'On a MongoDB memberships that a read asks about may be a second old, and followers of changes start over when theirs change: see the guide of rules.';
  return { ...passed('rules', `${all}, of which ${some(weaker)} depend on documents or memberships`), hint };
}

function some(names: readonly string[]): string {
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  return names.slice(0, MAX_NAMED).join(', ') + more;
}
