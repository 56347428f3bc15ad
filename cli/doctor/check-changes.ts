import type { App } from '../../src/app.js';
import { collectionStore } from '../../src/features/collections/collection-store.js';
import { listBoundedLogs } from '../../src/features/changes/log-bound.js';
import { listProjects } from '../../src/features/projects/project-store.js';
import { DAY_MS } from '../../src/platform/time/clock.js';
import { countOf, presentBytes } from '../view/present.js';
import { passed, type CheckResult } from './check.js';

/** The part of its bytes from which a log counts as full: the oldest changes go before their time. */
const FULL = 0.9;

/** What logs of changes take, and whether one of them reaches back less far than BSVC_KEEP says. */
export async function checkChanges(app: App): Promise<CheckResult> {
  let bytes = 0;
  let logs = 0;
  let full = 0;
  let shortestDays = Infinity;
  for (const project of await listProjects(app)) {
    for (const log of (await listBoundedLogs(app, project)).values()) {
      logs++;
      bytes += log.bytes;
      if (log.bytes < log.maxBytes * FULL) continue;
      full++;
      if (log.since) shortestDays = Math.min(shortestDays, (app.clock.now() - log.since.getTime()) / DAY_MS);
    }
  }
  if (logs === 0) return passed('changes', 'no log of changes yet');
  const all = `${countOf(logs, 'log')} of changes, ${presentBytes(bytes)}${await ageOfSets(app)}`;
  if (full === 0) return passed('changes', all);
  const reach = shortestDays === Infinity ? '' : `, the shortest reaches back ${shortestDays.toFixed(1)} days`;
  const hint = 'Clients that were away for longer start over. A larger plan of the project grants more.';
  return { ...passed('changes', `${all}; ${full} at the largest size${reach}`), hint };
}

/** What a MongoDB cannot promise of rules that ask about memberships; nothing elsewhere, or without such rules. */
async function ageOfSets(app: App): Promise<string> {
  if (app.db.changeLogs) return '';
  const named = await collectionStore(app).findOne({ state: 'active', 'namedBy.0': { $exists: true } });
  return named ? '; on a MongoDB reads may see memberships that are 1 s old, and streams cannot follow them' : '';
}
