import { parseDuration } from '../../src/config/setting-readers.js';
import type { App } from '../../src/app.js';
import { listActs, presentAct } from '../../src/features/audit/audit-log.js';
import { findProject } from '../../src/features/projects/project-store.js';
import { defineCommand, option } from '../shell/command.js';
import { presentList } from '../view/present.js';
import { wholeWithin } from '../../src/config/setting-readers.js';

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 10_000;

export default defineCommand({
  details:
    'Shows who changed what with which command, newest first. An action with status "started" is running, or its process died.',
  examples: [
    'bsvc audit',
    'bsvc audit --since 24h --json',
    'bsvc audit --action "key revoke" --limit 5',
    'bsvc audit --project shop --actor ann@example.com',
  ],
  parameters: {
    limit: option('--limit <n>', `how many (default: ${DEFAULT_LIMIT})`, wholeWithin(1, MAX_LIMIT)),
    since: option('--since <duration>', 'only newer entries than this, for example 24h or 30d', parseDuration),
    action: option('--action <words>', 'only this command, for example "project delete", or all of "project"'),
    actor: option('--actor <name>', 'only actions of this operator, for example ann@example.com'),
    project: option('--project <name>', 'only this project, by name or id; BSVC_PROJECT is not used here'),
  },
  async run(context, { limit = DEFAULT_LIMIT, since, action, actor, project }) {
    const app = await context.app();
    const acts = await listActs(app, {
      limit,
      action,
      actor,
      ...(project !== undefined && { about: await namesOf(app, project) }),
      ...(since !== undefined && { since: app.clock.now() - since }),
    });
    const shown = acts.map(presentAct);
    return presentList(shown, {
      name: ({ id }) => id,
      empty: 'No entries.',
      head: ['at', 'who', 'what', 'with', 'outcome'],
      row: (act) => [act.at, act.actor, act.action, presentInput(act.input), act.code ?? act.outcome],
    });
  },
});

/** A project that is gone is known by the name that is asked for. */
async function namesOf(app: App, named: string): Promise<string[]> {
  const project = await findProject(app, named);
  return project ? [project._id.toHexString(), project.name] : [named];
}

function presentInput(input: Record<string, unknown>): string {
  return Object.entries(input)
    .map(([name, given]) => (given === true ? name : `${name}=${[given].flat().map(presentWord).join(',')}`))
    .join(' ');
}

/** The value of an audit entry as text; a thing with a name, such as a declared field, shows as its name. */
function presentWord(given: unknown): string {
  if (typeof given === 'string') return given.replace(/\s+/g, ' ');
  const name = (given as { name?: unknown } | null)?.name;
  return typeof name === 'string' ? name : JSON.stringify(given);
}
