import { dirname, isAbsolute } from 'node:path';
import type { App } from '../../app.js';
import { invalid } from '../../errors.js';
import {
  addAfter,
  listAfter,
  parseTimeout,
  presentAfter,
  presentHook,
  readAfterEvent,
  removeAfter,
  removeHook,
  setHook,
} from '../hooks/change-hooks.js';
import { requireHookEvent } from '../hooks/hook.js';
import { readOwnFile, requireOwnEnv, setOwnEnv, setOwnFolder } from '../projects/own-code.js';
import type { Project } from '../projects/project.js';
import type { HookDeclaration, ProjectDeclaration, ScheduleDeclaration } from './project-declaration.js';
import {
  addSchedule,
  presentSchedule,
  readRepetition,
  removeSchedule,
  setSchedule,
} from '../hooks/change-schedules.js';
import { listSchedules } from '../hooks/schedule.js';

export type HookChange =
  | { action: 'add'; event: string; to: HookDeclaration }
  | { action: 'change'; event: string; what: string[]; to: HookDeclaration }
  | { action: 'drop'; event: string };

/** Where the files of own code are, and what of the environment they see. */
export interface OwnCodeChange {
  folder?: string;
  env?: string[];
  what: string[];
}

interface HookPlan {
  ownCode: OwnCodeChange | null;
  hooks: HookChange[];
}

/**
 * The difference between a project's hooks and the declared ones, by event, and between its folder and variables; none
 * without a declaration. Hooks that are not named go only with `prune`. 400 for a bad one.
 */
export async function planHooks(
  app: App,
  project: Project | null,
  { hooks: declared, ownCode, schedules = [] }: Pick<ProjectDeclaration, 'hooks' | 'ownCode' | 'schedules'>,
  { prune }: { prune: boolean },
): Promise<HookPlan> {
  if (ownCode?.env) requireOwnEnv(ownCode.env);
  const existing = project ? await presentHooks(app, project) : [];
  const hooks: HookChange[] = [];
  const named = new Set<string>();
  // Where the service says where files are, only their names count.
  const isTold = app.config.hooksDir === null;
  const folders = new Set(ownCode?.folder === undefined || !isTold ? [] : [ownCode.folder]);
  for (const to of declared ?? []) {
    const { event } = to;
    if (named.has(event)) throw invalid('INVALID_FILE', `The hook of ${event} is declared twice`);
    named.add(event);
    const run = checkHook(to);
    if (run?.folder !== undefined && isTold) folders.add(run.folder);
    const hook = existing.find((other) => other.event === event);
    const what = hook ? listDifferences(hook, to, run?.handler) : [];
    if (!hook) hooks.push({ action: 'add', event, to });
    else if (what.length > 0) hooks.push({ action: 'change', event, what, to });
  }
  for (const { name, run } of schedules) {
    const { path } = run === undefined ? { path: '' } : readOwnFile(run, name);
    if (isAbsolute(path) && isTold) folders.add(dirname(path));
  }
  const dropped = prune && declared ? existing.filter(({ event }) => !named.has(event)) : [];
  if (folders.size > 1) {
    throw invalid('INVALID_FILE', `All files of a project are in one folder, not in ${[...folders].join(' and ')}`);
  }
  return {
    ownCode: planOwnCode(app, project, { folder: [...folders][0], env: ownCode?.env }),
    hooks: [...hooks, ...dropped.map(({ event }) => ({ action: 'drop' as const, event }))],
  };
}

/** The hooks of a project as shown, including event handlers. */
async function presentHooks(app: App, project: Project) {
  const after = await listAfter(app, project);
  return [
    ...(project.hooks ?? []).map((hook) => presentHook(app, project, hook)),
    ...after.map(({ event, ...webhook }) => presentAfter(event, webhook)),
  ];
}

type Shown = Awaited<ReturnType<typeof presentHooks>>[number];

/** The file and folder of a hook that runs one. 400 for what no hook can be. */
function checkHook({ event, url, run, timeout, onFailure }: HookDeclaration) {
  if ((url === undefined) === (run === undefined)) {
    throw invalid('INVALID_FILE', `The hook of ${event} names either a url or a file to run`);
  }
  if (url !== undefined && !URL.canParse(url)) {
    throw invalid('INVALID_URL', `The address "${url.slice(0, 200)}" of the hook ${event} is no url`);
  }
  if (event.startsWith('after.')) {
    readAfterEvent(event);
    if (run === undefined) throw invalid('INVALID_FILE', `${event} runs a file: an address is declared under webhooks`);
    if (timeout !== undefined || onFailure !== undefined) {
      throw invalid('INVALID_FILE', `${event} is tried again as a webhook is: it has no timeout and no onFailure`);
    }
  } else {
    requireHookEvent(event);
    parseTimeout(timeout);
  }
  if (run === undefined) return null;
  const { path, handler } = readOwnFile(run, event);
  return { handler, ...(isAbsolute(path) && { folder: dirname(path) }) };
}

function listDifferences(hook: Shown, to: HookDeclaration, run: string | undefined): string[] {
  const target = run ?? new URL(to.url!).href;
  const present = hook.url ?? hook.run;
  const what = target === present ? [] : [`${present} -> ${target}`];
  const timeout = to.timeout ?? hook.timeoutMs;
  if (timeout !== hook.timeoutMs) what.push(`timeout: ${hook.timeoutMs} -> ${timeout} ms`);
  const onFailure = to.onFailure ?? hook.onFailure;
  if (onFailure !== hook.onFailure) what.push(`on failure: ${hook.onFailure} -> ${onFailure}`);
  return what;
}

function planOwnCode(
  app: App,
  project: Project | null,
  { folder, env }: { folder?: string | undefined; env?: string[] | undefined },
): OwnCodeChange | null {
  const now = project?.ownCode ?? {};
  const change: OwnCodeChange = { what: [] };
  if (folder !== undefined && folder !== now.dir) {
    change.folder = folder;
    change.what.push(`own code: ${now.dir ?? 'no folder'} -> ${folder}`);
  }
  const [before, after] = [now.env ?? [], env ?? now.env ?? []].map((names) => [...names].sort().join(', ') || 'none');
  if (before !== after) {
    change.env = env!;
    change.what.push(`variables of own code: ${before} -> ${after}`);
  }
  return change.what.length > 0 ? change : null;
}

export async function applyOwnCode(app: App, project: Project, { folder, env }: OwnCodeChange): Promise<void> {
  if (folder !== undefined) await setOwnFolder(app, project, folder);
  if (env !== undefined) await setOwnEnv(app, project, env);
}

/** The secret of a new address, which is shown once. */
export async function applyHook(app: App, project: Project, change: HookChange): Promise<string | null> {
  const { event } = change;
  const isAfter = event.startsWith('after.');
  if (change.action === 'drop') {
    await (isAfter ? removeAfter : removeHook)(app, project, event);
    return null;
  }
  if (!isAfter) {
    const { timeout: timeoutMs, url, run, onFailure } = change.to;
    return (await setHook(app, project, { event, url, run, onFailure, timeoutMs })).secret;
  }
  if (change.action === 'change') await removeAfter(app, project, event);
  await addAfter(app, project, { event, run: change.to.run, ifNotExists: true });
  return null;
}

/** The hooks of a project as a file declares them. */
export async function declareHooks(app: App, project: Project): Promise<Pick<ProjectDeclaration, 'hooks' | 'ownCode'>> {
  const { dir, env = [] } = project.ownCode ?? {};
  const folder = app.config.hooksDir === null ? dir : undefined;
  const hooks = (await presentHooks(app, project)).map(({ event, url, run, onFailure, timeoutMs }): HookDeclaration => {
    const file = run?.endsWith(`#${event}`) ? run.slice(0, -event.length - 1) : run;
    const target = url === null ? { run: `${folder ?? '.'}/${file}` } : { url };
    return onFailure === 'retry' ? { event, ...target } : { event, ...target, onFailure, timeout: timeoutMs };
  });
  const isThere = folder !== undefined || env.length > 0;
  return {
    ...(hooks.length > 0 && { hooks }),
    ...(isThere && { ownCode: { ...(folder !== undefined && { folder }), ...(env.length > 0 && { env }) } }),
  };
}

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
