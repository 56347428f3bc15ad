import type { App } from '../../src/app.js';
import { listCollections } from '../../src/features/collections/list-collections.js';
import { referencesOf } from '../../src/features/collections/references/reference.js';
import { listProjects } from '../../src/features/projects/list-projects.js';
import { countOf } from '../view/present-amount.js';
import { passed, type CheckResult } from './check.js';

/** What a MongoDB without transactions leaves out or holds less exactly; no line elsewhere. */
export async function checkTransactions(app: App): Promise<CheckResult[]> {
  if (app.db.writeTogether) return [];
  const hint =
    'POST /api/batch is 409 TRANSACTIONS_UNAVAILABLE. A MongoDB has them as a replica set; one member is enough.';
  const batches = { ...passed('batches', 'the database has no transactions'), hint };
  return [batches, ...(await listReferenceChecks(app))];
}

async function listReferenceChecks(app: App): Promise<CheckResult[]> {
  let checked = 0;
  for (const project of await listProjects(app)) {
    checked += (await listCollections(app, project._id)).flatMap(referencesOf).length;
  }
  if (checked === 0) return [];
  const hint =
    'A reference is looked up before the write: a document that is removed in that moment may be referred to.';
  return [{ ...passed('references', `${countOf(checked, 'reference')}, checked, not locked`), hint }];
}
