import { listCollections } from '../../../src/features/collections/list-collections.js';
import { reviewRules, type RuleFinding } from '../../../src/features/collections/rules/review-rules.js';
import { listLoosenedBy } from '../../../src/features/collections/schema/plan-schema.js';
import { planProjects } from '../../../src/features/declaration/plan-projects.js';
import { conflict } from '../../../src/errors.js';
import { chooseProject, projectOption } from '../../ask/choose-project.js';
import { readProjects } from '../../formats/read-declaration-file.js';
import { defineCommand, flag, option } from '../../shell/command.js';
import { presentFailure } from '../../view/exit.js';
import type { Result } from '../../view/output.js';

export default defineCommand({
  details: [
    'Looks at the rules of all collections of a project: grammar, names and types, and alternatives that no index serves (UNINDEXED, a warning). With --data stored documents too: whether they hold what the rules take them for.',
    'With --file it says besides what applying that file would let somebody do more than now. Ends with 1 when something is wrong or would be loosened, for CI.',
  ].join('\n'),
  examples: [
    'bsvc rules check --project board',
    'bsvc rules check --project board --data',
    'bsvc rules check --project board -f bsvc.yaml',
  ],
  parameters: {
    project: projectOption,
    data: flag('--data', 'look at stored documents too'),
    file: option('-f, --file <file>', 'YAML or JSON file that is going to be applied'),
  },
  async run(context, { project: named, data, file }): Promise<Result> {
    const { app, project } = await chooseProject(context, named);
    const findings: RuleFinding[] = [];
    for (const collection of await listCollections(app, project._id)) {
      findings.push(...(await reviewRules(app, collection, { data })));
    }
    let loosens: string[] = [];
    if (file !== undefined) {
      const { projects } = await readProjects(context, file);
      const own = projects.filter(({ name }) => name === project.name);
      const plans = await planProjects(app, own, { prune: false });
      loosens = plans.flatMap((plan) => [...plan.loosens, ...listLoosenedBy(plan.collections)]);
    }
    const errors = findings.filter(({ code }) => code !== 'UNINDEXED');
    const bad = errors.length + loosens.length;
    return {
      json: { findings, loosens },
      quiet: [...findings.map(({ collection, code }) => `${collection} ${code}`), ...loosens],
      text: ({ paint }) =>
        [
          ...findings.map(({ collection, code, message }) =>
            code === 'UNINDEXED'
              ? `${paint.yellow('!')} ${collection}: ${message}`
              : `${paint.red('✗')} ${collection}: ${message}`,
          ),
          ...loosens.map((line) => `${paint.red('✗')} loosens ${line}`),
          ...(findings.length + loosens.length === 0 ? [`The rules of ${project.name} are sound.`] : []),
        ].join('\n'),
      ...(bad > 0 && { failure: presentFailure(conflict('RULES_UNSOUND', `${bad} things are to be looked at`)) }),
    };
  },
});
