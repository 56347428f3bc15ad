import type { App } from '../../src/app.js';
import { listCollections } from '../../src/features/collections/list-collections.js';
import { referencesOf } from '../../src/features/collections/references/reference.js';
import { listProjects } from '../../src/features/projects/list-projects.js';
import { countOf } from '../view/present-amount.js';
import { passed, type CheckResult } from './check.js';

/** What a MongoDB holds less exactly of checked references; no line elsewhere, or without any. */
export async function listReferenceChecks(app: App): Promise<CheckResult[]> {
  if (app.db.kind !== 'mongodb') return [];
  let checked = 0;
  for (const project of await listProjects(app)) {
    checked += (await listCollections(app, project._id)).flatMap(referencesOf).length;
  }
  if (checked === 0) return [];
  const hint =
    'On a MongoDB a reference is looked up before the write: a document that is removed in that moment may be referred to.';
  return [{ ...passed('references', `${countOf(checked, 'reference')}, checked, not locked`), hint }];
}
