import type { App } from '../../src/app.js';
import type { AccessRules, Collection } from '../../src/features/collections/collection.js';
import { requireStoredCollection, listCollections } from '../../src/features/collections/collection-store.js';
import { completeRules } from '../../src/features/collections/rules/check-rules.js';
import {
  findUnindexed,
  presentFinding,
  reviewNamedRules,
  reviewNewRules,
  reviewRules,
  type RuleFinding,
} from '../../src/features/collections/rules/review-rules.js';
import { listLoosenedBy, resolveChange, type SchemaChange } from '../../src/features/collections/schema/plan-schema.js';
import { listExposed, type Exposed } from '../../src/features/management/list-exposed.js';
import { planProjects, NO_SECRETS, withoutSecrets } from '../../src/features/declaration/plan-projects.js';
import type { ProjectDeclaration } from '../../src/features/declaration/project-declaration.js';
import { findProject } from '../../src/features/projects/project-store.js';
import { hasStore } from '../../src/platform/database/database.js';
import { conflict, invalid, forbidden } from '../../src/errors.js';
import {
  chooseProject,
  findNamed,
  projectOption,
  chooseCollection,
  collectionArgument,
  viewAsOption,
} from '../ask/choose.js';
import { presentExposed } from '../doctor/check-access.js';
import { givenRules, RULE_OPTIONS, filterOption } from '../ask/options.js';
import { readProjects, readStructuredFile } from '../formats/read-declaration-file.js';
import { defineCommand, flag, option, optionalArgument, argument } from '../shell/command.js';
import type { Context } from '../shell/context.js';
import { withThrowAwayStore } from '../shell/temporary-database.js';
import { pointAt, presentFailure, UsageError } from '../view/exit.js';
import type { Result, TextStyle } from '../view/output.js';
import { countOf } from '../view/present.js';
import { explainAccess, type ExplainedAccess } from '../../src/features/documents/read/explain-access.js';
import type { ExplainedRule, Admits } from '../../src/features/access/rules/explain-rule.js';
import { findViewedUser } from '../../src/features/management/view-as.js';
import { USERS } from '../../src/features/collections/users-collection.js';
import { dirname, join } from 'node:path';
import { applyProjects } from '../../src/features/declaration/apply-projects.js';
import { readRuleTests } from '../../src/features/rule-tests/rule-test-file.js';
import { runRuleTests, type AccessMatrix, type RuleTestOutcome } from '../../src/features/rule-tests/run-rule-tests.js';

interface Found {
  /** What was looked at. */
  what: string;
  findings: RuleFinding[];
  /** Permissions that the new rules would add. */
  loosens: string[];
  exposed: Exposed[];
}

const check = defineCommand({
  details: [
    'Checks the rules of one or all collections of a project: grammar, names and types, and conditions without an index (UNINDEXED, a warning). With --data, also checks that stored documents have the types that the rules expect.',
    'Checks rules before you save them: those of a collection with --read and so on (rules that you leave out stay as they are), those of a file with --file. It then also shows how they would loosen access. Nothing is changed. Projects that do not exist yet are checked as the file declares them. It also lists what anyone with the publishable key can read, write and sign up for, each with the command that closes it. Exits with 1 if it finds a problem or access would be loosened, for CI.',
  ].join('\n'),
  examples: [
    'bsvc rules check --project board',
    'bsvc rules check --project board --data',
    "bsvc rules check cards --project board --read 'user.id in doc.members' --data",
    'bsvc rules check -f bsvc.yaml',
  ],
  parameters: {
    collection: optionalArgument('collection', 'name of the collection; all of them when left out'),
    project: projectOption,
    ...RULE_OPTIONS,
    data: flag('--data', 'check stored documents too'),
    file: option('-f, --file <file>', 'YAML or JSON file to check before you apply it'),
  },
  async run(context, { project: named, collection, data, file, ...texts }): Promise<Result> {
    const given = givenRules(texts);
    const isGiven = Object.keys(given).length > 0;
    if (isGiven && collection === undefined) throw new UsageError('Say of which collection the rules are to be.');
    if (file !== undefined && collection !== undefined) {
      throw new UsageError('A file is checked as a whole: leave out the collection, or the file.');
    }
    const { what, findings, loosens, exposed } =
      file === undefined
        ? await reviewProject(context, named, collection, isGiven ? given : null, data)
        : await reviewFile(context, named, file, data);
    const bad = findings.filter(({ code }) => code !== 'UNINDEXED').length + loosens.length;
    return {
      json: { findings: findings.map(presentFinding), loosens, exposed },
      quiet: [...findings.map(({ collection: name, code }) => `${name} ${code}`), ...loosens],
      text: ({ paint }) =>
        [
          ...findings.flatMap(({ collection: name, code, message, mistake }) => [
            `${code === 'UNINDEXED' ? paint.yellow('!') : paint.red('✗')} ${name}: ${message}`,
            ...(mistake ? [pointAt(mistake)] : []),
          ]),
          ...loosens.map((line) => `${paint.red('✗')} loosens ${line}`),
          ...(findings.length + loosens.length === 0 ? [`The rules of ${what} are sound.`] : []),
          ...(exposed.length > 0
            ? ['Open to anyone with the publishable key:', ...exposed.map((each) => `  ${presentExposed(each)}`)]
            : []),
        ].join('\n'),
      ...(bad > 0 && {
        failure: presentFailure(conflict('RULES_UNSOUND', `${countOf(bad, 'problem')} found`)),
      }),
    };
  },
});

/** The rules of a stored project or collection, or others that the collection may get. */
async function reviewProject(
  context: Context,
  named: string | undefined,
  collection: string | undefined,
  given: Partial<AccessRules> | null,
  data: boolean,
): Promise<Found> {
  const { app, project } = await chooseProject(context, named);
  const only = collection === undefined ? null : await requireStoredCollection(app, project._id, collection);
  const what = collection ?? project.name;
  if (only && given) {
    const rules = completeRules({ ...only.rules, ...given });
    return { what, ...(await reviewNewRules(app, only, rules, { data })), exposed: [] };
  }
  const findings = await reviewEach(app, only ? [only] : await listCollections(app, project._id), data);
  const exposed = await listExposed(app, project);
  const open = only ? exposed.filter(({ kind, name }) => kind === 'collection' && name === only.name) : exposed;
  return { what, findings, loosens: [], exposed: open };
}

async function reviewEach(app: App, collections: readonly Collection[], data: boolean): Promise<RuleFinding[]> {
  const findings: RuleFinding[] = [];
  for (const each of collections) findings.push(...(await reviewRules(app, each, { data })));
  return findings;
}

/** The project of a file as it would be, also where nothing is stored yet, as in a CI that begins with nothing. */
async function reviewFile(context: Context, named: string | undefined, file: string, data: boolean): Promise<Found> {
  const { projects } = await readProjects(context, file);
  const { mongodbUri, dataDir } = context.settings().config;
  const review = (app: App): Promise<Found> => reviewDeclared(app, context, named, { file, projects, data });
  if (mongodbUri !== null || (await hasStore(dataDir))) return review(await context.app());
  context.out.warn(`There is no database in ${dataDir}: the file is checked on its own.`);
  return withThrowAwayStore(context, review);
}

/** Collections that the file leaves alone are looked at as they are. */
async function reviewDeclared(
  app: App,
  context: Context,
  named: string | undefined,
  { file, projects, data }: { file: string; projects: readonly ProjectDeclaration[]; data: boolean },
): Promise<Found> {
  const word = named ?? findNamed(context) ?? (projects.length === 1 ? projects[0]!.name : undefined);
  if (word === undefined) throw new UsageError(`${file} declares several projects: add --project <name>.`);
  const project = await findProject(app, word);
  const name = project?.name ?? word;
  const own = projects.filter((each) => each.name === name);
  if (own.length === 0) throw invalid('INVALID_FILE', `${file} declares no project "${name}".`);
  const plans = await planProjects(app, own.map(withoutSecrets), NO_SECRETS);
  const changes = plans.flatMap(({ collections }) => collections);
  const stored = project ? await listCollections(app, project._id) : [];
  const isChanged = (each: Collection): boolean => changes.some(({ collection }) => collection === each.name);
  const unchanged = stored.filter((each) => !isChanged(each));
  const findings = await reviewEach(app, unchanged, data);
  for (const change of changes) findings.push(...(await reviewChange(app, stored, change, data)));
  const loosens = plans.flatMap((plan) => [...plan.loosens, ...(plan.project ? listLoosenedBy(plan.collections) : [])]);
  return { what: `${name} as the file says`, findings, loosens, exposed: [] };
}

/** The plan has refused what no collection can have: what is left is how the rules get on with what is stored. */
async function reviewChange(
  app: App,
  stored: readonly Collection[],
  change: SchemaChange,
  data: boolean,
): Promise<RuleFinding[]> {
  const current = stored.find(({ name }) => name === change.collection);
  if (change.action === 'add') return findUnindexed({ name: change.collection, rules: change.to.rules ?? null });
  if (change.action === 'drop' || !current) return [];
  return reviewNamedRules(app, { ...current, ...resolveChange(current, change) }, { data });
}

const explain = defineCommand({
  details:
    'Explains the rules of a collection for a user: + true, - false, ? depends on the document. With --id, decides each for that document. Without, shows the remaining filter and how a list is read.',
  examples: [
    'bsvc rules explain cards --project board --as ada@example.com',
    'bsvc rules explain cards --project board --as anyone --id 66f0c0ffee0ddba11c0de001',
    'bsvc rules explain cards --project board --as ada@example.com --filter board=66f0c0ffee0ddba11c0de002',
  ],
  parameters: {
    collection: collectionArgument,
    project: projectOption,
    as: viewAsOption,
    id: option('--id <document>', 'id of the document to decide about'),
    filters: filterOption(['as', 'id']),
  },
  async run(context, { as: named, id, filters, ...where }) {
    const name =
      named ?? (await context.ask.text('For whom (a user, or anyone):', 'Say for whom: --as <user>, or --as anyone'));
    const { app, project, collection } = await chooseCollection(context, where);
    if (collection.name === USERS) throw forbidden('USERS_BLOCKED', 'The users collection has no rules.');
    const as = await findViewedUser(app, project, name);
    const filter = new URLSearchParams(filters).toString();
    const explained = await explainAccess(app, project, collection, { as, id, filter }, context.stop);
    return {
      json: explained,
      quiet: explained.rules.map(({ rule, admits }) => `${rule} ${admits}`),
      text: (view) => presentExplained(view, explained),
    };
  },
});

const SIGNS: Record<Admits, string> = { yes: '+', no: '-', depends: '?' };

function presentExplained({ paint }: TextStyle, { rules, list, document }: ExplainedAccess): string {
  const lines = rules.flatMap((rule) => presentRule(rule, paint.bold));
  if (list && 'refused' in list) {
    lines.push('', `A list is refused: ${list.refused}`);
  } else if (list) {
    const by = list.indexes.length === 0 ? 'no index: every document is read' : `by ${list.indexes.join(', ')}`;
    lines.push('', `A list is read ${by}; ${list.examined} documents examined for ${list.returned} of the page`);
  }
  if (document && document.leftOut.length > 0) lines.push('', `Left out: ${document.leftOut.join(', ')}`);
  return lines.join('\n');
}

function presentRule(
  { rule, text, admits, alternatives, filter, sets }: ExplainedRule,
  bold: (text: string) => string,
): string[] {
  const lines = [`${SIGNS[admits]} ${bold(rule)}: ${text}`];
  for (const { admits: verdict, conditions } of alternatives) {
    const [first, ...more] = conditions;
    if (!first || (alternatives.length === 1 && more.length === 0)) continue;
    lines.push(`  ${SIGNS[verdict]} ${conditions.map((each) => `${SIGNS[each.admits]} ${each.text}`).join('  and  ')}`);
  }
  if (filter) lines.push(`    filter ${JSON.stringify(filter)}`);
  for (const set of sets) {
    const age = set.ageMs > 0 ? `, read ${set.ageMs} ms ago` : '';
    lines.push(`    ${set.text}: ${countOf(set.values, 'value')}${age}`);
  }
  return lines;
}

const test = defineCommand({
  details: [
    'Applies a declaration (bsvc.yaml beside the file, or what its "apply" names) to a temporary database, inserts the users and documents of the file, and checks each expectation. Your database is not touched.',
    'An expectation is { as: ada, read: cards, sees: [one, two] }, { as: bob, update: one, with: { title: x }, answers: RULE_REFUSED }, and so on; "anyone" is not signed in, "@ada" is the id of a user or document.',
    'Prints who may read (r), update (u) and delete (d) which document. Exits with 1 if an expectation fails.',
  ].join('\n'),
  examples: ['bsvc rules test rules.test.yaml', 'bsvc rules test rules.test.yaml --json'],
  parameters: { file: argument('file', 'YAML or JSON file with users, documents and expectations') },
  async run(context, { file }): Promise<Result> {
    const tests = await readTests(context, file);
    const declared = join(dirname(file), tests.apply ?? 'bsvc.yaml');
    const { projects } = await readProjects(context, declared);
    const named = projects.filter(({ name }) => tests.project === undefined || name === tests.project);
    const [declaration, ...others] = named;
    if (!declaration || others.length > 0) {
      const wanted = tests.project === undefined ? 'one project: name it by "project"' : `a project "${tests.project}"`;
      throw invalid('INVALID_FILE', `${declared} does not declare ${wanted}`);
    }
    const outcome = await withThrowAwayStore(context, async (app) => {
      const plans = await planProjects(app, [withoutSecrets(declaration)], NO_SECRETS);
      await applyProjects(app, plans, { stop: context.stop, onCreated: () => undefined });
      return runRuleTests(app, (await findProject(app, declaration.name))!, tests);
    });
    const { checked, unmet } = outcome;
    const text = `${unmet.length} of ${checked} expectations are not met`;
    return {
      json: outcome,
      quiet: unmet.map(({ number, as, does }) => `${number} ${as} ${does}`),
      text: (view) => presentOutcome(view, outcome),
      ...(unmet.length > 0 && { failure: presentFailure(invalid('RULE_TESTS_FAILED', text)) }),
    };
  },
});

async function readTests(context: Context, file: string): Promise<ReturnType<typeof readRuleTests>> {
  const value = await readStructuredFile(context, file);
  try {
    return readRuleTests(value);
  } catch (error) {
    throw invalid('INVALID_FILE', `${file}: ${(error as Error).message}`, { cause: error });
  }
}

function presentOutcome(view: TextStyle, { checked, unmet, matrix }: RuleTestOutcome): string {
  const tables = matrix.map((each) => presentMatrix(view, each));
  const lines = unmet.map(
    ({ number, as, does, expected, answered }) =>
      `${view.paint.red('✗')} ${number}. ${as} ${does}: expected ${expected}, but ${answered}`,
  );
  const end = unmet.length > 0 ? [] : [view.paint.green(`${checked} expectations are met.`)];
  return [...tables, ...lines, ...end].join('\n\n');
}

/** A row for each document, a column for each person: r, u and d for what they may do with it. */
function presentMatrix(view: TextStyle, { collection, documents }: AccessMatrix): string {
  const people = Object.keys(documents[0]?.may ?? {});
  const rows = documents.map(({ name, may }) => [
    name,
    ...people.map((person) =>
      (['read', 'update', 'delete'] as const)
        .map((action) => (may[person]!.includes(action) ? action[0] : '-'))
        .join(''),
    ),
  ]);
  return view.table([collection, ...people], rows);
}

export default { check, explain, test };
