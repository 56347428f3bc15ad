import { dirname, join } from 'node:path';
import { invalid } from '../../../src/errors.js';
import { applyProjects } from '../../../src/features/declaration/apply-projects.js';
import { planProjects, NO_SECRETS, withoutSecrets } from '../../../src/features/declaration/plan-projects.js';
import { findProject } from '../../../src/features/projects/project-store.js';
import { readRuleTests } from '../../../src/features/rule-tests/rule-test-file.js';
import {
  runRuleTests,
  type AccessMatrix,
  type RuleTestOutcome,
} from '../../../src/features/rule-tests/run-rule-tests.js';
import { readProjects, readStructuredFile } from '../../formats/read-declaration-file.js';
import type { Context } from '../../shell/context.js';
import { argument, defineCommand } from '../../shell/command.js';
import { withThrowAwayStore } from '../../shell/temporary-database.js';
import { presentFailure } from '../../view/exit.js';
import type { Result, TextStyle } from '../../view/output.js';

export default defineCommand({
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

async function presentOutcome(view: TextStyle, { checked, unmet, matrix }: RuleTestOutcome): Promise<string> {
  const tables: string[] = [];
  for (const each of matrix) tables.push(await presentMatrix(view, each));
  const lines = unmet.map(
    ({ number, as, does, expected, answered }) =>
      `${view.paint.red('✗')} ${number}. ${as} ${does}: expected ${expected}, but ${answered}`,
  );
  const end = unmet.length > 0 ? [] : [view.paint.green(`${checked} expectations are met.`)];
  return [...tables, ...lines, ...end].join('\n\n');
}

/** A row for each document, a column for each person: r, u and d for what they may do with it. */
async function presentMatrix(view: TextStyle, { collection, documents }: AccessMatrix): Promise<string> {
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
