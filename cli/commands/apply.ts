import type { Context } from '../shell/context.js';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { App } from '../../src/app.js';
import { applyProjects, type CreatedSecret } from '../../src/features/declaration/apply-projects.js';
import {
  DeclarationError,
  dropsFields,
  listLoosenedBy,
  presentSchemaChange,
} from '../../src/features/collections/schema/plan-schema.js';
import { requireSchemaFit } from '../../src/features/collections/schema/apply-schema.js';
import { declareProject } from '../../src/features/declaration/declare-project.js';
import { ITEM_WORDS, type ItemChange } from '../../src/features/declaration/plan-items.js';
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

const isSame = ({ project, what, collections, items }: ProjectPlan): boolean =>
  project !== null && [what, collections, items].every(({ length }) => length === 0);

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

/** Everything that a plan changes besides the project itself, in the order shown. */
function listItems({ items, collections }: ProjectPlan) {
  const providers = items.filter(({ kind }) => kind === 'provider');
  return [...providers, ...collections.map(presentSchemaChange), ...items.slice(providers.length)];
}

function listLosses(plan: ProjectPlan): { drops: string[]; loosens: string[] } {
  const { project, bucket, collections, items } = plan;
  const forgotten = bucket?.to === null ? project?.storage?.bucket?.bucket : undefined;
  const drops = listItems(plan).filter(({ action }) => action === 'drop');
  return {
    drops: [
      ...(forgotten === undefined ? [] : [`the bucket ${forgotten} with its secret`]),
      ...drops.map(({ kind, name }) =>
        kind === 'collection' ? `${name} with all documents` : `${ITEM_WORDS[kind]} ${name}`,
      ),
    ],
    // A new project has no users yet, whose fields could become public.
    loosens: [
      ...plan.loosens,
      ...items.flatMap(({ loosens = [] }) => loosens),
      ...(project ? listLoosenedBy(collections) : []),
    ],
  };
}

interface Change {
  action: 'add' | 'change' | 'drop';
  kind: 'project' | 'collection' | ItemChange['kind'];
  name: string;
  what?: string[];
  /** The changes that loosen access or validation. */
  loosens?: string[];
  /** Shown once. */
  keys?: { publishable: string; secret: string };
  secret?: string;
}

function listChanges(plan: ProjectPlan, created: readonly CreatedSecret[]): Change[] {
  const mine = created.filter(({ project }) => project === plan.name);
  const made = mine.find((secret) => 'keys' in secret);
  const changes: Change[] = [];
  const own = { kind: 'project', name: plan.name, what: plan.what } as const;
  if (!plan.project) changes.push({ action: 'add', ...own, ...(made && { keys: made.keys }) });
  else if (plan.what.length > 0) changes.push({ action: 'change', ...own, ...told(plan) });
  for (const { action, kind, name, what, ...change } of listItems(plan)) {
    const found = mine.find((secret) => 'kind' in secret && secret.kind === kind && secret.name === name);
    changes.push({
      ...{ action, kind, name: `${plan.name}/${name}` },
      ...(what && { what }),
      ...told(change),
      ...(found && 'secret' in found && { secret: found.secret }),
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
      const what = `${ITEM_WORDS[made.kind]} ${made.name}`;
      lines.push('', `Secret of the ${what}, shown this once:`, `  ${made.secret}`);
    }
  }
  return [...lines, '', ...(drops ? [DROPPED_FIELDS] : []), end].join('\n');
}
