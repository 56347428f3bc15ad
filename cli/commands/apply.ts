import type { Context } from '../shell/context.js';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { App } from '../../src/app.js';
import { applyProjects, type CreatedSecret } from '../../src/features/declaration/apply-projects.js';
import { DeclarationError, dropsFields, listLoosenedBy } from '../../src/features/collections/schema/plan-schema.js';
import { requireSchemaFit } from '../../src/features/collections/schema/apply-schema.js';
import { declareProject } from '../../src/features/declaration/declare-project.js';
import { planProjects, type ProjectPlan } from '../../src/features/declaration/plan-projects.js';
import {
  projectsFileSchema,
  type ProjectDeclaration,
  type FindSecret,
} from '../../src/features/declaration/project-declaration.js';
import { AppError } from '../../src/errors.js';
import { defineCommand, flag, option } from '../shell/command.js';
import { withThrowAwayStore } from '../shell/temporary-database.js';
import { Interrupted, presentFailure, UsageError, type Failure } from '../view/exit.js';
import type { Result, TextStyle } from '../view/output.js';
import { findWord } from '../shell/settings.js';
import { findDeclaration, readProjects } from '../formats/read-declaration-file.js';

/** Said after a plan that drops fields. */
const DROPPED_FIELDS = 'Values of dropped fields stay stored; declaring a field again shows them again.';

/**
 * Makes the person agree to what a declaration takes away: `drops` always, `loosens` unless `--prune` said so. Off a
 * terminal exit 2 without `--yes`.
 */
async function confirmLosses(
  context: Context,
  { prune }: { prune: boolean },
  { drops, loosens }: { drops: readonly string[]; loosens: readonly string[] },
  project: string,
): Promise<void> {
  const dropped = drops.length > 0 ? `Drops ${drops.join(', ')} of project ${project}.` : '';
  const loosened = loosens.length > 0 && !prune ? `Loosens in project ${project}: ${loosens.join('; ')}.` : '';
  if (dropped + loosened === '') return;
  const what = [dropped, loosened].filter(Boolean).join(' ');
  await context.confirm({ what, name: project, ...(!dropped && { reversible: true }) });
}

const DEFAULT_FILE = 'bsvc.yaml';

export default defineCommand({
  details: [
    'The file (format: bsvc/1) declares projects with plan, allowedDomains, limits, storage, signIn, users, collections, mail, webhooks, hooks, schedules and ownCode.',
    'Write secrets as { env: NAME }: the value is read from the environment or .env.',
    'Settings that it leaves out stay as they are; "rls: off" disables row-level security. "bsvc project export" writes the file of a running project.',
    'The plan shows + (created), ~ (changed), - (dropped). A second run changes nothing.',
    'Collections, fields, indexes, sign-in providers, templates, webhooks, hooks and schedules that a list of the file does not name stay, unless --prune drops them with what they hold.',
    'Asks before it loosens access (rules, protected and public fields, unique values, allowed domains, uploads, sign-in methods); --yes or --prune confirms.',
    'Keys of created projects and secrets of created webhooks, hooks and schedules are shown once. --schema prints the JSON Schema of the file, for editors.',
  ].join('\n'),
  examples: [
    'bsvc apply --dry-run',
    'bsvc apply',
    'bsvc apply -f staging.yaml',
    'bsvc apply --schema > bsvc.schema.json',
  ],
  audited: ({ dryRun, schema }) => !dryRun && !schema,
  destroys: 'at times',
  parameters: {
    file: option('-f, --file <file>', `YAML or JSON file (default: ${DEFAULT_FILE})`),
    dryRun: flag('--dry-run', 'only show the plan'),
    prune: flag('--prune', 'drop items that the file does not list'),
    forNewWrites: flag('--for-new-writes', 'apply new constraints to future writes only'),
    schema: flag('--schema', 'print the JSON Schema of the file'),
  },
  async run(context, input): Promise<Result> {
    if (input.schema) {
      const schema = projectsFileSchema();
      const text = JSON.stringify(schema, null, 2);
      return { json: schema, quiet: text, text: () => text };
    }
    const { file = DEFAULT_FILE } = input;
    if (input.file === undefined && !existsSync(resolve(context.io.cwd, DEFAULT_FILE))) {
      throw new UsageError(`There is no ${DEFAULT_FILE} here: name the file with -f <file>.`);
    }
    const { projects } = await readProjects(context, file);
    const secretOf = (name: string): string | undefined => findWord(context.layers, name);
    const app = await context.app();
    const withLine = <T>(work: Promise<T>): Promise<T> => work.catch((error: unknown) => failAt(context, file, error));
    const plans = await withLine(planProjects(app, projects, { prune: input.prune, secretOf }));
    await withLine(rehearse(context, app, projects, plans, { ...input, secretOf }));
    const created: CreatedSecret[] = [];
    let failure: Failure | undefined;
    if (!input.dryRun) {
      for (const plan of plans) await confirmLosses(context, input, listLosses(plan), plan.name);
      failure = await withLine(applyAll(app, plans, created, { stop: context.stop, forNewWrites: input.forNewWrites }));
    }
    const changes = plans.flatMap((plan) => listChanges(plan, created));
    return {
      json: { changes, applied: !input.dryRun && !failure },
      quiet: changes.flatMap(({ action, kind, name, keys, secret }) => [
        `${action} ${kind} ${name}`,
        ...(keys ? [keys.publishable, keys.secret] : []),
        ...(secret === undefined ? [] : [secret]),
      ]),
      text: (view) =>
        presentPlans(
          view,
          plans,
          created,
          input.dryRun
            ? 'Nothing was changed (--dry-run).'
            : failure
              ? 'Stopped in the middle, for the reason below; run it again to go on.'
              : 'Done.',
        ),
      ...(failure && { failure }),
    };
  },
});

/**
 * Carries the plans out on a store that is thrown away, which has the projects as they are but without documents, and
 * looks at the stored documents of what changes: errors are reported before anything is changed.
 */
async function rehearse(
  context: Context,
  app: App,
  projects: readonly ProjectDeclaration[],
  plans: readonly ProjectPlan[],
  options: { prune: boolean; forNewWrites: boolean; secretOf: FindSecret },
): Promise<void> {
  const changing = plans.filter((plan) => !isSame(plan));
  if (changing.length === 0) return;
  for (const { project, collections } of changing) {
    if (project) await requireSchemaFit(app, project, collections, options);
  }
  await withThrowAwayStore(context, async (trial) => {
    const carryOut = async (
      declared: readonly ProjectDeclaration[],
      how: { prune: boolean; secretOf: FindSecret },
    ): Promise<void> => {
      const trialPlans = await planProjects(trial, declared, how);
      await applyProjects(trial, trialPlans, { stop: context.stop, onCreated: () => undefined });
    };
    for (const { project } of changing) {
      if (!project) continue;
      const secrets = new Map<string, string>();
      const declared = await declareProject(app, project, secrets);
      const { webhooks, hooks: _hooks, schedules: _schedules, ownCode: _ownCode, ...present } = declared;
      const asItIs = { prune: false, secretOf: (name: string) => secrets.get(name) };
      await carryOut([present], asItIs);
      // Addresses that were taken under other settings only count.
      for (const webhook of webhooks ?? []) {
        await carryOut([{ name: project.name, webhooks: [webhook] }], asItIs).catch(() => undefined);
      }
    }
    await carryOut(
      projects.filter(({ name }) => changing.some((plan) => plan.name === name)),
      options,
    );
  });
}

const isSame = ({
  project,
  what,
  providers,
  collections,
  templates,
  webhooks,
  hooks,
  schedules,
}: ProjectPlan): boolean =>
  project !== null &&
  [what, providers, collections, templates, webhooks, hooks, schedules].every(({ length }) => length === 0);

/** A mistake in a collection, with the file and the line that declares it. */
async function failAt(context: Context, file: string, error: unknown): Promise<never> {
  if (!(error instanceof DeclarationError)) throw error;
  const line = await findDeclaration(context, file, error.collection);
  throw new AppError(error.kind, error.code, `${file}${line === null ? '' : `:${line}`}: ${error.message}`, {
    details: error.details,
    mistake: error.mistake,
    cause: error,
  });
}

/** A failure after secrets were made is reported beside them, since they are shown nowhere else. */
async function applyAll(
  app: App,
  plans: readonly ProjectPlan[],
  created: CreatedSecret[],
  options: { stop: AbortSignal; forNewWrites: boolean },
): Promise<Failure | undefined> {
  try {
    await applyProjects(app, plans, { ...options, onCreated: (secret) => created.push(secret) });
    return undefined;
  } catch (error) {
    if (created.length === 0) throw error;
    return presentFailure(options.stop.aborted ? new Interrupted() : error);
  }
}

function listLosses(plan: ProjectPlan): { drops: string[]; loosens: string[] } {
  const { project, bucket, providers, collections, templates, webhooks, hooks, schedules } = plan;
  const forgotten = bucket?.to === null ? project?.storage?.bucket?.bucket : undefined;
  const drops = [
    ...(forgotten === undefined ? [] : [`the bucket ${forgotten} with its secret`]),
    ...providers.flatMap((change) => (change.action === 'drop' ? [`sign-in provider ${change.name}`] : [])),
    ...collections.flatMap((change) => (change.action === 'drop' ? [`${change.collection} with all documents`] : [])),
    ...templates.flatMap((change) => (change.action === 'drop' ? [`template ${change.name}`] : [])),
    ...webhooks.flatMap((change) => (change.action === 'drop' ? [`webhook ${change.url}`] : [])),
    ...hooks.flatMap((change) => (change.action === 'drop' ? [`hook of ${change.event}`] : [])),
    ...schedules.flatMap((change) => (change.action === 'drop' ? [`schedule ${change.name}`] : [])),
  ];
  const opened = providers.flatMap((change) => (change.action === 'drop' ? [] : change.loosens));
  // A new project has no users yet, whose fields could become public.
  const loosened = project ? listLoosenedBy(collections) : [];
  return { drops, loosens: [...plan.loosens, ...opened, ...loosened] };
}

interface Change {
  action: 'add' | 'change' | 'drop';
  kind: 'project' | 'provider' | 'collection' | 'template' | 'webhook' | 'hook' | 'schedule';
  name: string;
  what?: string[];
  /** The changes that loosen access or validation. */
  loosens?: string[];
  /** Shown once. */
  keys?: { publishable: string; secret: string };
  secret?: string;
}

function listChanges(plan: ProjectPlan, created: readonly CreatedSecret[]): Change[] {
  const { name, what } = plan;
  const mine = created.filter(({ project }) => project === name);
  const made = mine.find((secret) => 'keys' in secret);
  const changes: Change[] = [];
  if (!plan.project) changes.push({ action: 'add', kind: 'project', name, what, ...(made && { keys: made.keys }) });
  else if (what.length > 0) changes.push({ action: 'change', kind: 'project', name, what, ...told(plan) });
  const add = (kind: Change['kind'], change: Omit<Change, 'kind' | 'name'>, inner: string): Change => ({
    action: change.action,
    kind,
    name: `${name}/${inner}`,
    ...(change.what && { what: change.what }),
    ...told(change),
  });
  changes.push(...plan.providers.map((change) => add('provider', change, change.name)));
  changes.push(...plan.collections.map((change) => add('collection', change, change.collection)));
  changes.push(...plan.templates.map((change) => add('template', change, change.name)));
  for (const change of plan.webhooks) {
    const url = change.action === 'drop' ? change.url : change.to.url;
    const secret = mine.find((found) => 'url' in found && found.url === url);
    changes.push({ ...add('webhook', change, url), ...(secret && 'secret' in secret && { secret: secret.secret }) });
  }
  for (const change of plan.hooks) {
    const secret = mine.find((found) => 'hook' in found && found.hook === change.event);
    changes.push({
      ...add('hook', change, change.event),
      ...(secret && 'secret' in secret && { secret: secret.secret }),
    });
  }
  for (const change of plan.schedules) {
    const secret = mine.find((found) => 'schedule' in found && found.schedule === change.name);
    changes.push({
      ...add('schedule', change, change.name),
      ...(secret && 'secret' in secret && { secret: secret.secret }),
    });
  }
  return changes;
}

function told({ loosens = [] }: { loosens?: string[] }): { loosens?: string[] } {
  return loosens.length > 0 ? { loosens } : {};
}

function presentPlans(
  { paint }: TextStyle,
  plans: readonly ProjectPlan[],
  created: readonly CreatedSecret[],
  end: string,
): string {
  const signs = { add: paint.green('+'), change: paint.yellow('~'), drop: paint.red('-') };
  const lines = plans.flatMap((plan) =>
    listChanges(plan, []).flatMap(({ action, kind, name, what = [] }) => [
      `${signs[action]} ${kind} ${name}`,
      ...what.map((line) => `    ${line}`),
    ]),
  );
  const drops = plans.some(({ collections }) => dropsFields(collections));
  if (lines.length === 0) return 'Nothing to change: everything is as the file declares it.';
  for (const made of created) {
    if ('keys' in made) {
      const { publishable, secret } = made.keys;
      lines.push('', `Keys of ${made.project}, shown this once:`, `  ${publishable}`, `  ${secret}`);
    } else {
      const hook = 'hook' in made ? `hook of ${made.hook}` : `schedule ${'schedule' in made ? made.schedule : ''}`;
      const what = 'url' in made ? `webhook ${made.url}` : hook;
      lines.push('', `Secret of the ${what}, shown this once:`, `  ${made.secret}`);
    }
  }
  return [...lines, '', ...(drops ? [DROPPED_FIELDS] : []), end].join('\n');
}
