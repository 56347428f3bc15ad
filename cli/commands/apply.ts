import { applyProjects, type CreatedKeys } from '../../src/features/operators/apply-projects.js';
import { planProjects, type ProjectPlan } from '../../src/features/operators/plan-projects.js';
import { projectsFileSchema, readProjectsFile } from '../../src/features/operators/project-declaration.js';
import { defineCommand, flag, value } from '../command.js';
import { confirmByName, yesOption } from '../confirm.js';
import { UsageError } from '../exit.js';
import type { Result, View } from '../output.js';
import { readStructuredFile, withParsedCollections } from '../read-declaration-file.js';

export default defineCommand({
  details: [
    'The file declares projects with plan, allowed domains, limits and collections; what it leaves out is left as it is.',
    'The plan is shown with + (made), ~ (changed), - (dropped). A second run changes nothing.',
    'Collections that the file does not name stay, unless --prune drops them with their documents.',
    'Keys of created projects are shown once. --schema prints the JSON Schema of the file, for editors.',
  ].join('\n'),
  examples: ['bsvc apply -f bsvc.yaml --dry-run', 'bsvc apply -f bsvc.yaml', 'bsvc apply --schema > bsvc.schema.json'],
  audited: true,
  parameters: {
    file: value('-f, --file <file>', 'YAML or JSON file'),
    dryRun: flag('--dry-run', 'only show the plan'),
    prune: flag('--prune', 'drop collections that the file does not name'),
    schema: flag('--schema', 'print the JSON Schema of the file'),
    yes: yesOption,
  },
  async run(context, input): Promise<Result> {
    if (input.schema) {
      const schema = projectsFileSchema();
      const text = JSON.stringify(schema, null, 2);
      return { json: schema, quiet: text, text: () => text };
    }
    if (input.file === undefined) throw new UsageError('No file given: add -f <file>.');
    const { projects } = readProjectsFile(withParsedCollections(await readStructuredFile(context, input.file)));
    const app = await context.app();
    const plans = await planProjects(app, projects, { prune: input.prune });
    const created: CreatedKeys[] = [];
    if (!input.dryRun) {
      await confirmDrops(plans, (what, name) => confirmByName(context, input.yes, what, name));
      await applyProjects(app, plans, (keys) => created.push(keys));
    }
    const changes = plans.flatMap((plan) => listChanges(plan, created));
    return {
      json: { changes, applied: !input.dryRun },
      quiet: changes.map(({ action, kind, name }) => `${action} ${kind} ${name}`),
      text: (view) => presentPlans(view, plans, created, input.dryRun),
    };
  },
});

async function confirmDrops(
  plans: readonly ProjectPlan[],
  confirm: (what: string, name: string) => Promise<void>,
): Promise<void> {
  for (const { name, collections } of plans) {
    const dropped = collections.filter(({ action }) => action === 'drop').map(({ collection }) => collection);
    if (dropped.length > 0) await confirm(`Drops ${dropped.join(', ')} of project ${name} with all documents.`, name);
  }
}

function listChanges(plan: ProjectPlan, created: readonly CreatedKeys[]) {
  const keys = created.find(({ project }) => project === plan.name)?.keys;
  const own = plan.project
    ? plan.what.length > 0 && { action: 'change', kind: 'project', name: plan.name, what: plan.what }
    : { action: 'add', kind: 'project', name: plan.name, what: plan.what, ...(keys && { keys }) };
  const collections = plan.collections.map((change) => ({
    action: change.action,
    kind: 'collection',
    name: `${plan.name}/${change.collection}`,
    ...(change.action === 'change' && { what: change.what }),
  }));
  return [...(own ? [own] : []), ...collections];
}

function presentPlans(
  { paint }: View,
  plans: readonly ProjectPlan[],
  created: readonly CreatedKeys[],
  dryRun: boolean,
): string {
  const signs: Record<string, string> = { add: paint.green('+'), change: paint.yellow('~'), drop: paint.red('-') };
  const lines = plans.flatMap((plan) =>
    listChanges(plan, []).flatMap(({ action, kind, name, what = [] }) => [
      `${signs[action]} ${kind} ${name}`,
      ...what.map((line) => `    ${line}`),
    ]),
  );
  if (lines.length === 0) return 'Nothing to change: everything is as the file declares it.';
  for (const { project, keys } of created) {
    lines.push('', `Keys of ${project}, shown this once:`, `  ${keys.publishable}`, `  ${keys.secret}`);
  }
  return [...lines, '', dryRun ? 'Nothing was changed (--dry-run).' : 'Done.'].join('\n');
}
