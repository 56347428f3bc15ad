import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import {
  addSchedule,
  presentSchedule,
  readRepetition,
  removeSchedule,
  setSchedule,
} from '../hooks/change-schedules.js';
import { listSchedules } from '../hooks/schedule.js';
import { readOwnFile } from '../projects/own-code.js';
import type { Project } from '../projects/project.js';
import type { ScheduleDeclaration } from './project-declaration.js';

export type ScheduleChange =
  | { action: 'add'; name: string; to: ScheduleDeclaration }
  | { action: 'change'; name: string; what: string[]; to: ScheduleDeclaration }
  | { action: 'drop'; name: string };

/**
 * The difference between a project's schedules and the declared ones, by name; none without a declaration. Those not
 * named go only with `prune`. 400 for a bad one.
 */
export async function planSchedules(
  app: App,
  project: Project | null,
  declared: readonly ScheduleDeclaration[] | undefined,
  { prune }: { prune: boolean },
): Promise<ScheduleChange[]> {
  if (!declared) return [];
  const stored = project ? await listSchedules(app, project._id) : [];
  const existing = stored.map((schedule) => presentSchedule(app, schedule));
  const changes: ScheduleChange[] = [];
  const named = new Set<string>();
  for (const to of declared) {
    const { name, url, run } = to;
    if (named.has(name)) throw invalid('INVALID_FILE', `The schedule ${name} is declared twice`);
    named.add(name);
    if ((url === undefined) === (run === undefined) || (url !== undefined && !URL.canParse(url))) {
      throw invalid('INVALID_FILE', `The schedule ${name} names either a url or a file to run`);
    }
    const wanted = {
      ...readRepetition(to),
      calls: run === undefined ? new URL(url!).href : readOwnFile(run, name).handler,
    };
    const schedule = existing.find((other) => other.name === name);
    if (!schedule) {
      changes.push({ action: 'add', name, to });
      continue;
    }
    const present = { ...schedule, calls: schedule.url ?? schedule.run! };
    const parts = ['cron', 'timeZone', 'missed', 'calls'] as const;
    const what = parts.flatMap((part) =>
      present[part] === wanted[part] ? [] : [`${part}: ${present[part]} -> ${wanted[part]}`],
    );
    if (what.length > 0) changes.push({ action: 'change', name, what, to });
  }
  const dropped = prune ? existing.filter(({ name }) => !named.has(name)) : [];
  // What goes makes room for what comes.
  return [...dropped.map(({ name }) => ({ action: 'drop' as const, name })), ...changes];
}

/** The secret of a new address, which is shown once. */
export async function applySchedule(app: App, project: Project, change: ScheduleChange): Promise<string | null> {
  if (change.action === 'change') return setSchedule(app, project, change.to);
  if (change.action === 'add') return (await addSchedule(app, project, { ...change.to, ifNotExists: true })).secret;
  await removeSchedule(app, project, change.name);
  return null;
}

/** The schedules of a project as a file declares them. */
export async function declareSchedules(app: App, project: Project): Promise<{ schedules?: ScheduleDeclaration[] }> {
  const folder = (app.config.hooksDir === null && project.ownCode?.dir) || '.';
  const schedules = (await listSchedules(app, project._id)).map((schedule): ScheduleDeclaration => {
    const { name, cron, timeZone, missed, url, run } = presentSchedule(app, schedule);
    const file = run?.endsWith(`#${name}`) ? run.slice(0, -name.length - 1) : run;
    return { name, cron, timeZone, missed, ...(url === null ? { run: `${folder}/${file}` } : { url }) };
  });
  return schedules.length > 0 ? { schedules } : {};
}
