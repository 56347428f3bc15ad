import type { App } from '../../src/app.js';
import { listProjects } from '../../src/features/projects/list-projects.js';
import { failed, passed, type CheckResult } from './check.js';

const MAX_NAMED = 5;

/**
 * Looks, where cookies go to other sites, for projects that admit every origin: their pages' cookies do not count. No
 * check where cookies stay at home.
 */
export async function checkCookies(app: App): Promise<CheckResult[]> {
  if (!app.config.crossSiteCookies) return [];
  const open = (await listProjects(app)).filter(({ allowedDomains }) => allowedDomains.includes('*'));
  if (open.length === 0) return [passed('cross-site cookies', 'every project names the origins that may use them')];
  const names = open.slice(0, MAX_NAMED).map(({ name }) => name);
  const shown = `${names.join(', ')}${open.length > MAX_NAMED ? ', …' : ''}`;
  return [
    failed(
      'cross-site cookies',
      `they do not count for projects that admit every origin (*): ${shown}`,
      `Name the origins of its pages: bsvc project update ${names[0]!} --allowed-domain https://app.example.com`,
    ),
  ];
}
